package service

import (
	"fmt"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

// class groups calls by how long they may hold a run token.
type class int

const (
	short class = iota
	medium
	long
	classes
)

// wallFactor is how much longer than its CPU limit a call of a class may stay: the wall limit is the net behind the CPU limit
// and recipes set it at three times (4 s and 12 s).
const wallFactor = 3

func (c class) String() string { return [classes]string{"S", "M", "L"}[c] }

// limit is the CPU and wall limit of a call that names the class and no limits.
func (c class) limit() time.Duration {
	return [classes]time.Duration{5 * time.Second, 30 * time.Second, 60 * time.Second}[c]
}

func parseClass(name string) (class, error) {
	for c := range classes {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("limits.class is %q, expected S, M or L (5, 30 or 60 s)", name)
}

// classOf is the shortest class that holds the limits.
func classOf(l sandbox.Limits) (class, error) {
	for c := range classes {
		if l.CPU <= c.limit() && l.Wall <= wallFactor*c.limit() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("limits are %v CPU and %v wall, expected at most %v and %v", l.CPU, l.Wall, long.limit(), wallFactor*long.limit())
}

// tokens are the run tokens of each class. One of a class serves its own calls and those of shorter classes.
type tokens [classes]int

// share splits n run tokens: an eighth (at least one) for long calls, a quarter for medium ones, the rest for short ones.
func share(n int) tokens {
	l, m := max(1, n/8), max(1, n/4)
	return tokens{short: n - m - l, medium: m, long: l}
}

// take finds a token for a call of class c, its own class's first.
func (t *tokens) take(c class) (from class, ok bool) {
	for from = c; from < classes; from++ {
		if t[from] > 0 {
			t[from]--
			return from, true
		}
	}
	return 0, false
}
