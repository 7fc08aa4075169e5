package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// childName is argv[0] of the re-executed program; stageVar carries its configuration.
const (
	childName = "restar-sandbox-zygote"
	stageVar  = "RESTAR_SANDBOX_STAGE1"
	controlFD = 3
)

// stage is what stage 1 of a zygote is told.
type stage struct {
	Python string
	Filter []byte
	Zygote zygoteConfig
}

// zygoteConfig is read by zygote.py.
type zygoteConfig struct {
	Preload     []string `json:"preload"`
	Texts       Texts    `json:"texts"`
	LandlockABI int      `json:"landlock_abi"`
	Range       int      `json:"range"`
	Namespaces  int      `json:"namespaces"`
}

// MaybeChild must be called first in main (and TestMain): when this process is the re-executed first stage of a zygote it
// builds the sandbox's root, becomes the Python zygote and does not return. Otherwise it returns at once.
func MaybeChild() {
	if len(os.Args) == 0 || os.Args[0] != childName {
		return
	}
	runtime.LockOSThread() // personality and namespaces belong to the thread that executes the interpreter
	err := stage1()
	_, _ = unix.Write(controlFD, []byte("E"+err.Error()))
	os.Exit(1)
}

// stage1 runs as root of fresh namespaces. It only returns on failure.
func stage1() error {
	var s stage
	if err := json.Unmarshal([]byte(os.Getenv(stageVar)), &s); err != nil {
		return fmt.Errorf("configuration in %s: %w", stageVar, err)
	}
	if err := buildRoot(s); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("sethostname: %w", err)
	}
	if err := fixProcess(); err != nil {
		return err
	}
	env, err := zygoteEnv(s.Zygote)
	if err != nil {
		return err
	}
	return syscall.Exec(s.Python, []string{s.Python, "-B", "-s", "-P", "/sbx/zygote.py"}, env)
}

// fixProcess sets what every descendant inherits: no address randomisation, a stack of 8 MiB, an open control socket.
func fixProcess() error {
	const addrNoRandomize = 0x0040000
	if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); e != 0 {
		return fmt.Errorf("personality(ADDR_NO_RANDOMIZE): %w", e)
	}
	const stack = 8 << 20
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &old); err != nil {
		return fmt.Errorf("getrlimit stack: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: min(stack, old.Max), Max: min(stack, old.Max)}); err != nil {
		return fmt.Errorf("setrlimit stack: %w", err)
	}
	if _, err := unix.FcntlInt(controlFD, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

func zygoteEnv(c zygoteConfig) ([]string, error) {
	b, err := json.Marshal(c)
	return append(strings.Fields(callEnv), "SANDBOX_CONFIG="+string(b)), err
}

// callEnv is the environment of every call. One BLAS thread: a call has a share of a core, and threads would cost a page
// fault each.
const callEnv = `PATH=/usr/bin:/bin HOME=/tmp TMPDIR=/tmp USER=sandbox LANG=C.UTF-8 LC_ALL=C.UTF-8 TZ=UTC PYTHONHASHSEED=0
PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg MPLCONFIGDIR=/tmp`
