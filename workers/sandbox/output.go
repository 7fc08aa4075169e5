package sandbox

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// floodBytes of one stream end a call: it is far beyond what is ever kept, and a program that prints that much does not
// stop by itself. The rest below it is read and dropped, so that a long output does not block its writer.
const floodBytes = 8 << 20

// output is one stream of a call: its first bytes, and whether there were more.
type output struct {
	kept  []byte
	total int64
}

// Sizes of one read: most calls print a line, and what is allocated for each is what the collector, which takes a core from
// some call now and then, has to run for.
const (
	firstRead = 512
	nextReads = 8 << 10
	floodRead = 64 << 10
)

// capture reads f to its end. It calls flooded once when the stream is a flood, and goes on reading.
func (o *output) capture(f *os.File, keep int, flooded func()) {
	buf := make([]byte, firstRead)
	for {
		n, err := f.Read(buf)
		before := o.total
		o.take(buf[:n], keep)
		switch {
		case before <= floodBytes && o.total > floodBytes:
			flooded()
			buf = make([]byte, floodRead)
		case n == firstRead && len(buf) == firstRead:
			buf = make([]byte, nextReads)
		}
		if err != nil {
			return
		}
	}
}

func (o *output) take(b []byte, keep int) {
	o.total += int64(len(b))
	if room := keep - len(o.kept); room > 0 {
		o.kept = append(o.kept, b[:min(len(b), room)]...)
	}
}

// rest reads what lies in the pipe f, whose writers are stopped and whose deadline has passed.
func (o *output) rest(f *os.File, keep int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		buf := make([]byte, 8<<10)
		for {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				return
			}
			o.take(buf[:n], keep)
		}
	})
}

func (o *output) truncated() bool { return o.total > int64(len(o.kept)) }

// text is the kept bytes as valid UTF-8; a rune cut by the limit is left out.
func (o *output) text() string {
	b := o.kept
	if o.truncated() {
		for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
			if c := b[len(b)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(b[len(b)-i:]) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}

// deliver writes s to a pipe and closes it, at once when it fits the pipe and beside the caller otherwise. A reader that
// goes away is not an error: a program need not read its input.
func deliver(f *os.File, s string) {
	const fits = 60 << 10 // below the pipe's 64 KiB
	write := func() {
		_, _ = io.WriteString(f, s)
		f.Close()
	}
	if len(s) <= fits {
		write()
		return
	}
	go write()
}
