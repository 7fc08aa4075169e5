// Pid 1 of one call's pid namespace: no libc, no heap, one descriptor (3, the status pipe), no memory of the call.
// When the call's process (pid 2) ends it kills and reaps whatever is left, so the record it writes is exact: nothing of
// the call lives after it. Without a record the call counts as lost, never as a success.
#include <asm/unistd.h>
#include <linux/prctl.h>
#include <linux/resource.h>

enum { STATUS = 3, CALL = 2, SIGKILL = 9, SIGCHLD = 17, SIGSTOP = 19, EINTR = 4, CAP_KILL = 5 };

// Little-endian, shared with record.go.
struct record {
  char kind; // 'S'
  int status, minor_faults; // faults of this process included
  long user_us, system_us, max_rss_kb, own_us;
} __attribute__((packed));

struct action {
  void *handler;
  unsigned long flags;
  void *restorer;
  unsigned long mask;
};

static long sys(long n, long a, long b, long c, long d) {
  long r;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}

static void quit(int code) { sys(__NR_exit_group, code, 0, 0, 0); }

static void ignore_signals(void) {
  for (int s = 1; s < 32; s++) {
    struct action a = {(void *)(long)(s == SIGCHLD ? 0 : 1), 0, 0, 0}; // SIGCHLD ignored would lose the wait status
    if (s != SIGKILL && s != SIGSTOP) sys(__NR_rt_sigaction, s, (long)&a, 0, 8);
  }
}

static long micros(long s, long us) { return s * 1000000 + us; }

static void report(int status) {
  struct rusage u, own;
  sys(__NR_kill, -1, SIGKILL, 0, 0);
  for (;;) {
    long p = sys(__NR_wait4, -1, 0, 0, 0);
    if (p < 0 && p != -EINTR) break;
  }
  sys(__NR_getrusage, RUSAGE_CHILDREN, (long)&u, 0, 0);
  sys(__NR_getrusage, RUSAGE_SELF, (long)&own, 0, 0);
  struct record r = {'S', status, (int)(u.ru_minflt + own.ru_minflt), micros(u.ru_utime.tv_sec, u.ru_utime.tv_usec),
                     micros(u.ru_stime.tv_sec, u.ru_stime.tv_usec), u.ru_maxrss,
                     micros(own.ru_utime.tv_sec, own.ru_utime.tv_usec) + micros(own.ru_stime.tv_sec, own.ru_stime.tv_usec)};
  sys(__NR_write, STATUS, (long)&r, sizeof r, 0);
  sys(__NR_close, STATUS, 0, 0, 0); // the reader sees the end now, not after the kernel's grace periods for this namespace
  quit(0);
}

// Keeps the one capability it needs, to kill processes of another uid in its own pid namespace. In a range of ids it also
// leaves the zygote's uid, and does not take the call's: a call could then set the limits of its init.
static void drop_privilege(int range) {
  sys(__NR_prctl, PR_SET_KEEPCAPS, 1, 0, 0);
  if (range && (sys(__NR_setgroups, 0, 0, 0, 0) || sys(__NR_setresgid, 1, 1, 1, 0) || sys(__NR_setresuid, 1, 1, 1, 0))) quit(97);
  unsigned header[2] = {0x20080522, 0}, caps[6] = {1 << CAP_KILL, 1 << CAP_KILL, 0, 0, 0, 0};
  if (sys(__NR_capset, (long)header, (long)caps, 0, 0)) quit(97);
  sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0);
}

__attribute__((used)) void run(long *stack) {
  int range = ((char **)(stack + 1))[0][0] == '1';
  sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0);
  ignore_signals();
  sys(__NR_close_range, 0, STATUS - 1, 0, 0);
  sys(__NR_close_range, STATUS + 1, ~0u, 0, 0);
  drop_privilege(range);
  for (;;) {
    int status = 0;
    long p = sys(__NR_wait4, -1, (long)&status, 0, 0);
    if (p == CALL) report(status);
    if (p < 0 && p != -EINTR) quit(96);
  }
}

__asm__(".globl _start\n_start: xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call run\n hlt\n");
