package sandbox

import (
	"encoding/binary"
	"syscall"
	"time"
)

// record is what the call's init writes when everything of the call is dead: struct record of init.c.
type record struct {
	wait   syscall.WaitStatus
	cpu    time.Duration // of all processes that were waited for
	peakKB int64
	init   time.Duration // of the init itself, before and after
	faults int64         // minor, of all processes that were waited for and of the init
}

const recordSize = 1 + 4 + 4 + 8 + 8 + 8 + 8

// parseRecord reads the status pipe's content. failure is the text of a setup step that failed; neither means that the
// init was killed.
func parseRecord(b []byte) (r record, ok bool, failure string) {
	if len(b) > 0 && b[0] == 'E' {
		return r, false, string(b[1:])
	}
	if len(b) != recordSize || b[0] != 'S' {
		return r, false, ""
	}
	micros := func(at int) time.Duration {
		return time.Duration(binary.LittleEndian.Uint64(b[at:])) * time.Microsecond
	}
	return record{wait: syscall.WaitStatus(binary.LittleEndian.Uint32(b[1:])), cpu: micros(9) + micros(17),
		peakKB: int64(binary.LittleEndian.Uint64(b[25:])), init: micros(33), faults: int64(binary.LittleEndian.Uint32(b[5:]))}, true, ""
}
