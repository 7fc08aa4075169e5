package sandbox

import (
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// allowedCalls is everything a Python program needs. All else is EPERM. It is an allow-list because the assembler applies
// the default action to the i386 ABI, so that a deny-list could be stepped around through int 0x80. memfd_create is left
// out: its pages escape the limits of tier B; inotify and flock are: they act on files that all calls see, so that one call
// could watch or hold up another.
const allowedCalls = `
read write open openat openat2 close close_range stat fstat lstat newfstatat statx statfs fstatfs poll ppoll lseek mmap
mprotect munmap brk mremap madvise msync mincore rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait
rt_sigqueueinfo rt_sigsuspend rt_tgsigqueueinfo sigaltstack ioctl pread64 pwrite64 readv writev preadv pwritev preadv2
pwritev2 access faccessat faccessat2 pipe pipe2 select pselect6 sched_yield dup dup2 dup3 pause nanosleep clock_nanosleep
getitimer alarm setitimer getpid gettid getppid getpgrp getpgid setpgid getsid setsid getuid geteuid getgid getegid
getresuid getresgid getgroups sendfile copy_file_range fork vfork execve execveat exit exit_group wait4 waitid kill tgkill
tkill uname fcntl fsync fdatasync truncate ftruncate fallocate fadvise64 getdents getdents64 getcwd chdir fchdir
rename renameat renameat2 mkdir mkdirat rmdir creat link linkat unlink unlinkat symlink symlinkat readlink readlinkat chmod
fchmod fchmodat umask utime utimes utimensat futimesat gettimeofday time clock_gettime clock_getres times getrlimit
getrusage sysinfo sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max
sched_get_priority_min getpriority setpriority prctl arch_prctl futex set_tid_address set_robust_list get_robust_list rseq
membarrier getcpu getrandom mlock munlock epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime timer_create timer_settime timer_gettime timer_getoverrun timer_delete bind connect listen accept accept4
getsockname getpeername sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown setsockopt getsockopt capget
restart_syscall sync_file_range`

const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func policy() seccomp.Policy {
	when := func(name string, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name,
			Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: op, Value: value}}}
	}
	return seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Names: strings.Fields(allowedCalls), Action: seccomp.ActionAllow,
			NamesWithCondtions: []seccomp.NameWithConditions{
				when("clone", seccomp.BitsNotSet, cloneNamespaces),
				when("socket", seccomp.Equal, unix.AF_UNIX),
				when("socketpair", seccomp.Equal, unix.AF_UNIX),
				when("prlimit64", seccomp.Equal, 0), // its own: in a single-id namespace the init has the call's uid
			}},
		// glibc falls back to clone, whose flags a filter can see, on ENOSYS only.
		{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
	}}
}
