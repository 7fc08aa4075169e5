// The zygote's spawn loop, loaded into the Python zygote with ctypes.
//
// sbx_serve() waits for spawn requests on fd 3 and never touches the Python heap, so every call starts from the same
// bytes. For each request it makes
//   A  a vfork child in new pid and mount namespaces, which mounts the call's own /proc and /tmp, forks B, and becomes
//      the libc-free init (pid 1 of the call);
//   B  the process of the call (pid 2), which locks itself down here and is the only one that returns to Python.
// A failure in A or B is reported as "E<text>" on the status pipe, which untrusted code never holds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONTROL = 3, MAX_GROUPS = 4, PIPES = 5, STATUS = 4, CALL_ID = 1000 };

// Little-endian, shared with slot.go.
struct request {
  uint32_t id, uid, tmp_kb, inodes, session;
  uint64_t cpu_s, fsize, nofile, nproc, data;
} __attribute__((packed));
struct reply {
  uint32_t id;
  int32_t err;
} __attribute__((packed));

// What stays the same for the zygote's life; shared with zygote.py.
struct config {
  const void *bpf;
  uint32_t bpf_len, landlock_abi, range;
  uint32_t namespaces; // further CLONE_NEW* flags of every call
  uint64_t data_base; // data segment of the zygote in bytes: limits are on what a call adds
} __attribute__((packed));

struct spawn {
  struct request req;
  const struct config *cfg;
  int fd[PIPES + MAX_GROUPS]; // stdin stdout stderr request status, then cgroup.procs files
  int fds;
};

static void die(const struct spawn *s, const char *layer) {
  char b[200];
  int n = snprintf(b, sizeof b, "E%s: %s", layer, strerror(errno));
  if (write(s->fd[STATUS], b, n) < 0) {
  }
  _exit(97);
}

static void put(const struct spawn *s, const char *path, const char *text, const char *layer) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) die(s, layer);
  close(fd);
}

// ---- A: namespaces and mounts

static void mounts(const struct spawn *s) {
  char o[128];
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid")) die(s, "mount /proc");
  snprintf(o, sizeof o, "size=%uk,nr_inodes=%u,mode=0700,uid=%u,gid=%u", s->req.tmp_kb, s->req.inodes, s->req.uid, s->req.uid);
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, o)) die(s, "mount /tmp");
  if (chdir("/tmp")) die(s, "chdir /tmp");
}

// ---- B: lock-down, in the order that keeps each step's privilege until it is used

struct ll_ruleset { uint64_t fs, net, scoped; };
struct ll_path { uint64_t access; int32_t fd; } __attribute__((packed));

static void landlock(const struct spawn *s) {
  uint32_t abi = s->cfg->landlock_abi;
  if (abi == 0) return;
  uint64_t fs = (1ull << 13) - 1; // ABI 1; then refer, truncate, ioctl on devices
  if (abi >= 2) fs |= 1ull << 13;
  if (abi >= 3) fs |= 1ull << 14;
  if (abi >= 5) fs |= 1ull << 15;
  struct ll_ruleset rs = {fs, abi >= 4 ? 3 : 0, abi >= 6 ? 3 : 0};
  int fd = syscall(SYS_landlock_create_ruleset, &rs, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
  if (fd < 0) die(s, "landlock ruleset");
  const uint64_t ro = 1 | 4 | 8; // execute, read file, read directory
  const struct { const char *path; uint64_t access; } rule[] = {{"/", ro}, {"/tmp", ~0ull}, {"/dev", ro | 2}};
  for (int i = 0; i < 3; i++) {
    struct ll_path p = {rule[i].access & fs, open(rule[i].path, O_PATH | O_CLOEXEC)};
    if (p.fd < 0 || syscall(SYS_landlock_add_rule, fd, 1, &p, 0)) die(s, "landlock rule");
    close(p.fd);
  }
  if (syscall(SYS_landlock_restrict_self, fd, 0)) die(s, "landlock restrict");
  close(fd);
}

static void limit(const struct spawn *s, int what, uint64_t soft, uint64_t hard, const char *layer) {
  struct rlimit l = {soft, hard};
  if (setrlimit(what, &l)) die(s, layer);
}

static void limits(const struct spawn *s) {
  const struct request *r = &s->req;
  limit(s, RLIMIT_CORE, 0, 0, "rlimit core");
  limit(s, RLIMIT_MEMLOCK, 0, 0, "rlimit memlock");
  limit(s, RLIMIT_MSGQUEUE, 0, 0, "rlimit msgqueue");
  limit(s, RLIMIT_CPU, r->cpu_s, r->cpu_s + 1, "rlimit cpu");
  limit(s, RLIMIT_FSIZE, r->fsize, r->fsize, "rlimit fsize");
  limit(s, RLIMIT_NOFILE, r->nofile, r->nofile, "rlimit nofile");
  limit(s, RLIMIT_NPROC, r->nproc, r->nproc, "rlimit nproc");
  limit(s, RLIMIT_DATA, s->cfg->data_base + r->data, s->cfg->data_base + r->data, "rlimit data");
}

// A user namespace of the call's own: the same visible uid in every call, and a process count of its own.
static void identity(const struct spawn *s) {
  uint32_t uid = s->req.uid;
  char map[64];
  if (s->cfg->range && (syscall(SYS_setgroups, 0, 0) || syscall(SYS_setresgid, uid, uid, uid) || syscall(SYS_setresuid, uid, uid, uid)))
    die(s, "setuid");
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); // a change of uid hides /proc/self from its owner
  if (unshare(CLONE_NEWUSER)) die(s, "user namespace of the call");
  put(s, "/proc/self/setgroups", "deny", "setgroups");
  snprintf(map, sizeof map, "%d %u 1", CALL_ID, uid);
  put(s, "/proc/self/uid_map", map, "uid_map");
  put(s, "/proc/self/gid_map", map, "gid_map");
}

static void drop_caps(const struct spawn *s) {
  for (int c = 0; c <= 63; c++)
    if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0)) break; // ends at the kernel's last capability
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  uint32_t header[2] = {0x20080522, 0}, none[6] = {0};
  if (syscall(SYS_capset, header, none)) die(s, "capset");
}

static void signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, 0);
}

static void lockdown(const struct spawn *s) {
  setpgid(0, 0);
  for (int i = 0; i < 4; i++)
    if (dup2(s->fd[i], i) < 0) die(s, "dup2");
  for (int i = PIPES; i < s->fds; i++)
    if (write(s->fd[i], "0", 1) != 1) die(s, "join cgroup");
  put(s, "/proc/self/oom_score_adj", "1000", "oom_score_adj");
  identity(s);
  limits(s);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die(s, "no_new_privs");
  landlock(s);
  drop_caps(s);
  signals();
  if (s->cfg->bpf_len) {
    struct sock_fprog f = {s->cfg->bpf_len / 8, (void *)s->cfg->bpf};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f)) die(s, "seccomp");
  }
  syscall(SYS_close_range, 4, ~0u, 0);
}

// ---- the loop

// Runs in A on the zygote's stack. Returns only in B, which has its own memory.
__attribute__((noinline)) static void child(const struct spawn *s) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  setsid();
  signal(SIGCHLD, SIG_DFL); // before B can end: ignored, as the zygote has it, would lose B's status
  mounts(s);
  pid_t b = _Fork();
  if (b < 0) die(s, "fork");
  if (b == 0) {
    lockdown(s);
    return;
  }
  dup2(s->fd[STATUS], CONTROL); // A's own descriptor table: the zygote keeps its control socket
  char *argv[] = {s->cfg->range ? "1" : "0", 0}, *env[] = {0};
  execve("/sbx/init", argv, env);
  die(s, "exec init");
}

// 0 in B; in the zygote the pid of A, with its pidfd, or -errno.
__attribute__((noinline)) static long spawn(const struct spawn *s, int *pidfd) {
  long r;
  register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
  unsigned long flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | s->cfg->namespaces | SIGCHLD;
  __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_clone), "D"(flags), "S"(0), "d"(pidfd), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  if (r == 0) child(s);
  return r;
}

static int receive(struct spawn *s) {
  union { struct cmsghdr h; char b[CMSG_SPACE(sizeof s->fd)]; } c;
  struct iovec v = {&s->req, sizeof s->req};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
  ssize_t n;
  do n = recvmsg(CONTROL, &m, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  s->fds = 0;
  struct cmsghdr *h = CMSG_FIRSTHDR(&m);
  if (n != sizeof s->req || !h || h->cmsg_type != SCM_RIGHTS) return -1;
  s->fds = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  memcpy(s->fd, CMSG_DATA(h), s->fds * sizeof(int));
  return s->fds < PIPES ? -1 : 0;
}

static int answer(uint32_t id, long pid, int pidfd) {
  union { struct cmsghdr h; char b[CMSG_SPACE(sizeof(int))]; } c;
  struct reply r = {id, pid < 0 ? -pid : 0};
  struct iovec v = {&r, sizeof r};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
  if (pid > 0) {
    m.msg_control = &c;
    m.msg_controllen = sizeof c;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &pidfd, sizeof(int));
  }
  return sendmsg(CONTROL, &m, MSG_NOSIGNAL) == sizeof r ? 0 : -1;
}

// Returns 0 in the process of a call, 1 in that of a session, -1 in the zygote when the supervisor is gone.
int sbx_serve(const struct config *cfg) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  signal(SIGCHLD, SIG_IGN); // the kernel reaps the inits
  if (write(CONTROL, "R", 1) != 1) return -1;
  for (;;) {
    struct spawn s = {.cfg = cfg};
    int pidfd = -1;
    if (receive(&s)) return -1;
    long pid = spawn(&s, &pidfd);
    if (pid == 0) return s.req.session;
    for (int i = 0; i < s.fds; i++) close(s.fd[i]);
    int bad = answer(s.req.id, pid, pidfd);
    if (pidfd >= 0) close(pidfd);
    if (bad) return -1;
  }
}
