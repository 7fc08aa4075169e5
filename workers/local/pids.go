package local

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// supervisorName is this process's own entry in pids.json.
const supervisorName = "supervisor"

// pidFile is DIR/pids.json: the process id of everything that runs for a
// folder, by name.
type pidFile struct {
	path string
	mu   sync.Mutex
	pids map[string]int
}

func newPidFile(dir string) *pidFile {
	return &pidFile{path: filepath.Join(dir, "pids.json"), pids: map[string]int{}}
}

// reset forgets what a former owner of the folder wrote.
func (p *pidFile) reset() error { return p.set(supervisorName, os.Getpid()) }

func (p *pidFile) set(name string, pid int) error {
	return p.change(func() { p.pids[name] = pid })
}

// remove forgets a process that ended, unless the name runs again.
func (p *pidFile) remove(name string, pid int) error {
	return p.change(func() {
		if p.pids[name] == pid {
			delete(p.pids, name)
		}
	})
}

func (p *pidFile) change(do func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	body, err := json.MarshalIndent(p.pids, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", p.path, err)
	}
	return writeAtomic(p.path, append(body, '\n'))
}
