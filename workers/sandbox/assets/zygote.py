# The zygote: pid 1 of a long-lived set of namespaces. It imports what calls may need, makes the interpreter
# deterministic, and enters the C spawn loop, which returns only in the process of a call. It never holds a call's data.
# Descriptor 3 is the control socket here ("R" ready, "E..." failure) and the request pipe in a call.
import _ast, ctypes, gc, importlib, json, os, random, sys, time, types

CALL_FILE = '<unknown>'  # ast.parse's default name; it is part of the text of a SyntaxError
EPOCH_NS = 1735689600 * 10**9  # 2025-01-01T00:00:00Z: where the clock of every call starts
TICK_NS = 1000  # each reading of the clock advances it, so that a loop waiting for a time ends


class Clock:
    """The wall clock as a call sees it: it advances with readings and sleeps only, so a replay gives the same text."""

    def __init__(self):
        self.ns, self._sleep = EPOCH_NS, time.sleep

    def time_ns(self):
        self.ns += TICK_NS
        return self.ns

    def time(self):
        return self.time_ns() / 1e9

    def sleep(self, seconds, /):
        self._sleep(seconds)
        self.ns += int(seconds * 1e9)

    def install(self):
        for name in ('time', 'time_ns', 'sleep'):
            setattr(time, name, getattr(self, name))
        for name in ('gmtime', 'localtime', 'ctime'):
            setattr(time, name, self._default_now(getattr(time, name)))
        strftime, asctime, gettime = time.strftime, time.asctime, time.clock_gettime
        time.strftime = lambda fmt, t=None, /: strftime(fmt, time.localtime() if t is None else t)
        time.asctime = lambda t=None, /: asctime(time.localtime() if t is None else t)
        time.clock_gettime = lambda k, /: self.time() if k == time.CLOCK_REALTIME else gettime(k)
        self._install_datetime()

    def _default_now(self, convert):
        return lambda seconds=None, /: convert(self.time() if seconds is None else seconds)

    def _install_datetime(self):
        import datetime
        kind = datetime.datetime

        def now(cls, tz=None):
            return cls.fromtimestamp(self.time(), tz)

        def utcnow(cls):
            return cls.fromtimestamp(self.time(), datetime.timezone.utc).replace(tzinfo=None)

        # The C type is immutable from Python; a subclass would show in repr() and in isinstance().
        names = gc.get_referents(kind.__dict__)[0]
        names['now'], names['utcnow'] = classmethod(now), classmethod(utcnow)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


class Entropy:
    """os.urandom, unseeded random.Random and SystemRandom as functions of the call's seed."""

    def __init__(self):
        self.source = random.Random(0)
        self._seed = random.Random.seed

    def urandom(self, n, /):
        return self.source.getrandbits(8 * n).to_bytes(n, 'little') if n else b''

    def install(self):
        os.urandom = random._urandom = self.urandom
        seed, source = self._seed, self.source

        def seeded(generator, a=None, version=2):
            seed(generator, source.getrandbits(64) if a is None else a, version)

        random.Random.seed = seeded
        random.seed = random._inst.seed  # bound before the change

    def reseed(self, seed):
        self._seed(self.source, seed ^ 0x9E3779B97F4A7C15)  # apart from the stream the call itself sees
        random.seed(seed)
        numpy = sys.modules.get('numpy')
        if numpy is not None:
            numpy.random.seed(seed & 0xFFFFFFFF)


# ---- running a call

def compiled(source):
    """The statements, and the last expression (or None) whose value is echoed as IPython does."""
    tree = compile(source, CALL_FILE, 'exec', _ast.PyCF_ONLY_AST, True)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = _ast.Expression(tree.body.pop().value)
    body = compile(tree, CALL_FILE, 'exec', 0, True)
    if last is not None:
        last = compile(last, CALL_FILE, 'eval', body.co_flags & FUTURE_FLAGS, True)
    return body, last


def execute(source, scope):
    body, last = compiled(source)
    exec(body, scope)
    if last is not None:
        value = eval(last, scope)
        if value is not None:
            print(repr(value))


def failing_line(error):
    if isinstance(error, SyntaxError) and error.filename == CALL_FILE:
        return error.lineno
    line, tb = None, error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == CALL_FILE:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def explanation(error, lines):
    """`Type at line N: msg` and the source line; `Type: msg` where no line of the call is to blame."""
    kind = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = ''
    line = failing_line(error) if isinstance(error, Exception) else None
    if line is None or not 1 <= line <= len(lines):
        return f'{kind}: {message}\n'
    return f'{kind} at line {line}: {message}\n  {lines[line - 1].strip()}\n'


def exit_code(stop):
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def guarded(f, lines):
    """Runs f as the interpreter would at top level; the exit code, or None to go on."""
    try:
        f()
    except SystemExit as stop:
        return exit_code(stop)
    except BaseException as error:
        flush()
        sys.stderr.write(explanation(error, lines))
        return 1


def flush():
    bad = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            bad = True
    return bad


def interpret(source):
    """One call from its source to its exit code, with the interpreter's own order of ending."""
    module = types.ModuleType('__main__')
    module.__file__ = '/tmp/main.py'
    module.__builtins__ = __builtins__
    sys.modules['__main__'] = module
    lines = source.split('\n')
    if 'linecache' in sys.modules:
        sys.modules['linecache'].cache[CALL_FILE] = (len(source), None, [l + '\n' for l in lines], CALL_FILE)
    code = guarded(lambda: execute(source, module.__dict__), lines) or 0
    threading = sys.modules.get('threading')
    if threading is not None:
        code = guarded(threading._shutdown, lines) or code
    code = guarded(ATEXIT, lines) or code
    return 120 if flush() and code == 0 else code


def read_request():
    """8 bytes of seed, little-endian, then the source in UTF-8."""
    parts = []
    while part := os.read(3, 1 << 20):
        parts.append(part)
    os.close(3)
    data = b''.join(parts)
    if len(data) < 8:
        os._exit(0)  # the pool closed this slot unused
    return int.from_bytes(data[:8], 'little'), data[8:].decode('utf-8', 'replace')


# ---- the zygote

class Config(ctypes.Structure):
    _pack_ = 1
    _fields_ = [('bpf', ctypes.c_void_p), ('bpf_len', ctypes.c_uint32), ('landlock_abi', ctypes.c_uint32), ('range', ctypes.c_uint32),
                ('namespaces', ctypes.c_uint32), ('data_base', ctypes.c_uint64)]


def fail(text):
    os.write(3, b'E' + text.encode())
    os._exit(1)


def preload(modules):
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            fail(f'preload {error.name or name}: {error}')


def prepare_streams():
    sys.stdin.reconfigure(encoding='utf-8', errors='surrogateescape')
    sys.stdout.reconfigure(encoding='utf-8', errors='surrogateescape', line_buffering=True)
    sys.stderr.reconfigure(encoding='utf-8', errors='backslashreplace', line_buffering=True)


def main():
    options = json.loads(os.environ.pop('SANDBOX_CONFIG'))
    sys.path[:] = ['/tmp'] + [p for p in sys.path if p.startswith('/usr/')]
    sys.argv = ['main.py']
    preload(options['preload'])
    prepare_streams()
    clock, entropy = Clock(), Entropy()
    clock.install()
    entropy.install()
    with open('/sbx/filter.bpf', 'rb') as f:
        bpf = f.read()
    program = ctypes.create_string_buffer(bpf, len(bpf) + 1)
    with open('/proc/self/statm') as f:
        data = int(f.read().split()[5]) * os.sysconf('SC_PAGESIZE')
    config = Config(ctypes.addressof(program), len(bpf), options['landlock_abi'], options['range'], options['namespaces'], data)
    serve = ctypes.PyDLL('/sbx/shim.so').sbx_serve
    compiled('1')  # first use of the path every call takes
    gc.collect()
    gc.freeze()
    if serve(ctypes.byref(config)) != 0:
        os._exit(0)
    seed, source = read_request()
    entropy.reseed(seed)
    os._exit(interpret(source))


import __future__
import atexit
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag
ATEXIT = atexit._run_exitfuncs
main()
