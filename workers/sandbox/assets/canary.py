import ctypes, errno, json, os, socket, time

held = {}
libc = ctypes.CDLL(None, use_errno=True)


def denied(f):
    try:
        f()
    except (OSError, MemoryError):
        return True
    return False


def fill_tmp():
    with open('/tmp/fill', 'wb', buffering=0) as f:
        for _ in range(@TMP_KB@ // 64 + 2):
            if f.write(b'x' * 65536) < 65536:
                raise OSError


def fork_many():
    for n in range(@PIDS@ + 8):
        try:
            pid = os.fork()
        except OSError:
            return True
        if pid == 0:
            time.sleep(60)
            os._exit(0)
    return False


def status(key):
    with open('/proc/self/status') as f:
        return next((l.split()[1] for l in f if l.startswith(key + ':')), '')


held['descriptors'] = all(denied(lambda: os.fstat(fd)) for fd in range(3, 256))
held['inet'] = denied(lambda: socket.socket(socket.AF_INET))
held['vsock'] = denied(lambda: socket.socket(40))
held['netlink'] = denied(lambda: socket.socket(16, socket.SOCK_RAW, 0))
held['listener'] = denied(lambda: socket.create_connection(('127.0.0.1', @PORT@), 1))
held['abstract'] = denied(lambda: socket.socket(socket.AF_UNIX).connect('\0@ABSTRACT@'))
held['host_file'] = denied(lambda: open('@FILE@').read())
held['read_only'] = all(denied(lambda: open(p, 'w')) for p in ('/x', '/usr/lib/x', '/dev/x', '/etc/x'))
held['tmp'] = denied(fill_tmp)
held['mount'] = libc.mount(b't', b'/tmp', b'tmpfs', 0, 0) != 0
held['unshare'] = libc.unshare(0x10000000) != 0
held['ptrace'] = libc.syscall(101, 16, 1, 0, 0) != 0
held['io_uring'] = libc.syscall(425, 8, 0) < 0
held['pid'] = os.getpid() == 2 and os.getppid() == 1
held['uid'] = os.getuid() == 1000 and os.getgid() == 1000
held['host_pid'] = denied(lambda: os.kill(@PID@, 0))
held['memory'] = denied(lambda: bytearray((@MEMORY_MB@ + 64) << 20))
held['no_new_privs'] = status('NoNewPrivs') == '1'
held['seccomp'] = status('Seccomp') == '2'
held['capabilities'] = {status(c) for c in ('CapEff', 'CapPrm', 'CapBnd', 'CapInh', 'CapAmb')} == {'0' * 16}
held['processes'] = fork_many()
print(json.dumps(held))
