package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Fact is one thing the machine says of itself, for an operator who wonders why a layer does not hold.
type Fact struct{ Name, Value string }

func facts() []Fact {
	return []Fact{
		{"kernel", kernel()},
		{"user", fmt.Sprintf("uid %d", os.Geteuid())},
		{"Landlock ABI", fmt.Sprint(landlockABI())},
		{"cgroups", cgroupFact()},
		{"user.max_user_namespaces", setting("user/max_user_namespaces")},
		{"kernel.unprivileged_userns_clone", setting("kernel/unprivileged_userns_clone")},
		{"kernel.apparmor_restrict_unprivileged_userns", setting("kernel/apparmor_restrict_unprivileged_userns")},
		{"seccomp of this process", seccompMode()},
	}
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(u.Release[:])
}

// sysctl reads a kernel setting, "" where the kernel has none of that name.
func sysctl(path string) string {
	b, _ := os.ReadFile("/proc/sys/" + path)
	return strings.TrimSpace(string(b))
}

// setting shows a kernel setting.
func setting(path string) string { return cmp.Or(sysctl(path), "not in this kernel") }

func seccompMode() string {
	switch keyed("/proc/self/status", "Seccomp") {
	case 0:
		return "none"
	case 1:
		return "strict"
	}
	return "a filter (a container's profile may deny user namespaces)"
}

func cgroupFact() string {
	h, err := hierarchies()
	switch {
	case err != nil:
		return err.Error()
	case h.v2:
		return "v2, " + strings.Join(h.controllers(), " ")
	}
	return "v1, " + strings.Join(h.order, " ")
}

// namespaceFix says what a machine that refuses user namespaces has to change, as far as it tells.
func namespaceFix() string {
	var fixes []string
	if sysctl("user/max_user_namespaces") == "0" {
		fixes = append(fixes, "sysctl user.max_user_namespaces is 0: set it above 0")
	}
	if sysctl("kernel/unprivileged_userns_clone") == "0" && os.Geteuid() != 0 {
		fixes = append(fixes, "sysctl kernel.unprivileged_userns_clone is 0: set it to 1 (Debian)")
	}
	if sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0 {
		fixes = append(fixes, "sysctl kernel.apparmor_restrict_unprivileged_userns is 1: set it to 0, or give the program an AppArmor profile with userns (Ubuntu)")
	}
	if keyed("/proc/self/status", "Seccomp") == 2 {
		fixes = append(fixes, "a container's seccomp profile is in force: a pod needs hostUsers: false and the capability SYS_ADMIN, or a Localhost "+
			"profile that allows clone, unshare, mount and pivot_root")
	}
	if len(fixes) == 0 {
		fixes = append(fixes, "they need sysctl user.max_user_namespaces > 0, kernel.unprivileged_userns_clone = 1 (Debian), "+
			"kernel.apparmor_restrict_unprivileged_userns = 0 (Ubuntu), and in a container a seccomp profile that allows clone, unshare, mount and "+
			"pivot_root (pod: hostUsers: false with SYS_ADMIN)")
	}
	return strings.Join(fixes, "; ")
}
