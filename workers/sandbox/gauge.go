package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// gauge is a kernel file that is read again and again. The zero value has none.
type gauge struct{ file *os.File }

func (a *gauge) open(path string) (err error) {
	a.file, err = os.Open(path)
	return err
}

func (a *gauge) close() {
	if a.file != nil {
		a.file.Close()
	}
}

// text is what the file says now, "" without one.
func (a *gauge) text() string {
	if a.file == nil {
		return ""
	}
	var b [1 << 10]byte // several times what the kernel writes there
	n, _ := a.file.ReadAt(b[:], 0)
	return string(b[:n])
}

// keyed reads one number of a file of "key value" lines, 0 if it is not there.
func keyed(path, key string) int64 {
	b, _ := os.ReadFile(path)
	return value(string(b), key)
}

// value finds one number in lines of "key value", 0 if it is not there.
func value(text, key string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && strings.TrimSuffix(f[0], ":") == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
