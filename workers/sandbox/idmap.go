package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

const (
	rangeBase = 1_000_000 // far above any system's users
	rangeSize = 65_536
	// firstSeat is the uid of seat 0 inside the zygote; the ids below belong to the zygote and the inits.
	firstSeat = 10_000
)

// idRange says where root maps the sandbox's ids to: a range that no user of the machine has, or, where root itself only
// has a range (a container with user namespaces), the upper part of that range.
func idRange(uidMap string) (host, size int, err error) {
	for line := range strings.Lines(uidMap) {
		var inside, outside, n int
		if c, _ := fmt.Sscan(line, &inside, &outside, &n); c != 3 {
			return 0, 0, fmt.Errorf("uid_map line is %q, expected three numbers", line)
		}
		switch {
		case inside <= rangeBase && inside+n >= rangeBase+rangeSize:
			return rangeBase, rangeSize, nil
		case inside == 0 && n >= 2*firstSeat+firstSeat:
			return n / 2, n / 2, nil
		}
	}
	return 0, 0, fmt.Errorf("uid_map gives no range of %d ids above the system's (it is %q): run as an unprivileged user, or give the container 65536 ids",
		2*firstSeat, strings.TrimSpace(uidMap))
}

// mapIDs fills in the id mappings: a range when root, the single own id otherwise. It reports whether it is a range.
func mapIDs(attr *syscall.SysProcAttr) (bool, error) {
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	if os.Geteuid() != 0 {
		attr.UidMappings, attr.GidMappings = one(os.Geteuid()), one(os.Getegid())
		return false, nil
	}
	own, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false, err
	}
	host, size, err := idRange(string(own))
	if err != nil {
		return false, err
	}
	m := []syscall.SysProcIDMap{{ContainerID: 0, HostID: host, Size: size}}
	attr.UidMappings, attr.GidMappings = m, m
	attr.GidMappingsEnableSetgroups = true
	attr.Credential = &syscall.Credential{} // without it the capabilities are lost at exec
	return true, nil
}
