package sandbox

import (
	"strconv"
	"sync"
)

// seat is what a slot needs for itself and the next one can use again: a uid outside and, in tier A, a cgroup.
type seat struct {
	index int
	group *group // nil in tier B
}

func (s *seat) procs() []int {
	if s.group == nil {
		return nil
	}
	return s.group.procs
}

func (s *seat) apply(l Limits) error {
	if s.group == nil {
		return nil
	}
	return s.group.apply(l)
}

// seats hands out seats. There are as many as there have been slots at one time.
type seats struct {
	cgroups *cgroups // nil in tier B
	mu      sync.Mutex
	free    []*seat
	made    int
}

func (s *seats) take() (*seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		seat := s.free[n-1]
		s.free = s.free[:n-1]
		return seat, nil
	}
	seat := &seat{index: s.made}
	if s.cgroups != nil {
		g, err := s.cgroups.group("seat-" + strconv.Itoa(s.made))
		if err != nil {
			return nil, infrastructure("cgroup of seat %d: %w", s.made, err)
		}
		seat.group = g
	}
	s.made++
	return seat, nil
}

// give returns a seat whose processes are all gone.
func (s *seats) give(seat *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, seat)
}

func (s *seats) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seat := range s.free {
		if seat.group != nil {
			seat.group.close()
		}
	}
	s.free = nil
	if s.cgroups != nil {
		s.cgroups.close()
	}
}
