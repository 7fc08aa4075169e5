package local

import (
	"fmt"
	"time"
)

const (
	// steadyAfter is how long a child must live for its death not to count
	// towards giving up.
	steadyAfter = 10 * time.Second
	// quickDeaths in a row end the attempt: what fails so often at once will not
	// mend itself.
	quickDeaths = 6
	// firstRestart doubles with each quick death up to longestRestart. The very
	// first restart is immediate: fast recovery matters most then.
	firstRestart   = 200 * time.Millisecond
	longestRestart = 5 * time.Second
)

// restarts decides when a child is started again. The zero value is ready.
type restarts struct{ quick int }

// next returns the pause before the restart of p, which ended, or why there is
// to be none.
func (r *restarts) next(p *process) (time.Duration, error) {
	if p.state.ExitCode() == ExitConfig {
		return 0, p.failure("it cannot run here")
	}
	if time.Since(p.began) >= steadyAfter {
		r.quick = 0
	}
	r.quick++
	if r.quick >= quickDeaths {
		return 0, p.failure(fmt.Sprintf("it died %d times in a row within %v of its start", r.quick, steadyAfter))
	}
	if r.quick == 1 {
		return 0, nil
	}
	return min(firstRestart<<(r.quick-2), longestRestart), nil
}
