package sandbox

import _ "embed"

// The built assets come from shim.c and init.c through build.sh; a test rebuilds and compares them.
var (
	//go:embed assets/zygote.py
	zygoteSource []byte
	//go:embed assets/shim.so
	shimObject []byte
	//go:embed assets/init.elf
	initProgram []byte
	//go:embed assets/canary.py
	canarySource string
)

//go:generate sh assets/build.sh
