# The zygote: pid 1 of a long-lived set of namespaces. It imports what calls may need, makes the interpreter
# deterministic, and enters the C spawn loop, which returns only in the process of a call or session. It never holds a
# call's data. Descriptor 3 is the control socket here ("R" ready, "E..." failure), the request pipe in a call, and the
# channel of cells in a session. As a plain subprocess (an insecure pool) it is a call or session from the start.
import _ast, ctypes, gc, importlib, io, json, os, random, resource, sys, time, types

EXIT = os._exit  # as the interpreter has it: a program may replace its own
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


# ---- running a program

class Template:
    """A text with marks in braces, parsed once so that no value is taken for a mark."""

    def __init__(self, text):
        self.parts = []
        while text:
            literal, _, text = text.partition('{')
            mark, closed, after = text.partition('}')
            if closed and mark in ('type', 'line', 'message', 'source'):
                self.parts += [(literal, ''), ('', mark)]
                text = after
            else:
                self.parts.append((literal + ('{' if _ else ''), ''))

    def fill(self, values):
        return ''.join(literal or values.get(mark, '') for literal, mark in self.parts)


class Texts:
    """What a failure reads like: struct Texts of texts.go."""

    def __init__(self, options):
        self.located, self.unlocated = Template(options['located']), Template(options['unlocated'])
        self.traceback, self.echo = options['traceback'], not options['no_echo']


class Program:
    """One source text. file is what its frames are called; failures say CALL_FILE, which the paper's executor gives."""

    def __init__(self, source, texts, file=CALL_FILE):
        self.source, self.texts, self.file = source, texts, file
        self.lines = source.split('\n')

    def compiled(self):
        """The statements, and the last expression (or None) whose value is echoed as IPython does."""
        tree = compile(self.source, CALL_FILE, 'exec', _ast.PyCF_ONLY_AST, True)
        last = None
        if self.texts.echo and tree.body and isinstance(tree.body[-1], _ast.Expr):
            last = _ast.Expression(tree.body.pop().value)
        body = compile(tree, self.file, 'exec', 0, True)
        if last is not None:
            last = compile(last, self.file, 'eval', body.co_flags & FUTURE_FLAGS, True)
        return body, last

    def execute(self, scope):
        body, last = self.compiled()
        exec(body, scope)
        if last is not None:
            value = eval(last, scope)
            if value is not None:
                print(repr(value))

    def failing_line(self, error):
        if isinstance(error, SyntaxError) and error.filename == CALL_FILE:
            return error.lineno
        line, tb = None, error.__traceback__
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == self.file:
                line = tb.tb_lineno
            tb = tb.tb_next
        return line

    def explanation(self, error):
        """The text of an exception, located where a line of the program is to blame."""
        if self.texts.traceback:
            return self.whole_traceback(error)
        if isinstance(error, SyntaxError) and error.filename == self.file:
            error.filename = CALL_FILE
        values = {'type': type(error).__name__, 'message': message_of(error)}
        line = self.failing_line(error) if isinstance(error, Exception) else None
        if line is None or not 1 <= line <= len(self.lines):
            return self.texts.unlocated.fill(values)
        return self.texts.located.fill({**values, 'line': str(line), 'source': self.lines[line - 1].strip()})

    def whole_traceback(self, error):
        import traceback
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename != self.file:
            tb = tb.tb_next
        return ''.join(traceback.format_exception(type(error), error, tb))

    def guarded(self, f):
        """Runs f as the interpreter would at top level; the exit code, or None to go on."""
        try:
            f()
        except SystemExit as stop:
            return exit_code(stop)
        except BaseException as error:
            flush()
            sys.stderr.write(self.explanation(error))
            return 1

    def remember(self):
        """Lets tracebacks and inspect find the source."""
        if 'linecache' in sys.modules:
            sys.modules['linecache'].cache[self.file] = (len(self.source), None, [l + '\n' for l in self.lines], self.file)


def message_of(error):
    try:
        return str(error)
    except Exception:
        return ''


def exit_code(stop):
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def flush():
    bad = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            bad = True
    return bad


def main_module():
    module = types.ModuleType('__main__')
    module.__file__ = '/tmp/main.py'
    module.__builtins__ = __builtins__
    sys.modules['__main__'] = module
    return module.__dict__


def interpret(source, texts):
    """One call from its source to its exit code, with the interpreter's own order of ending."""
    scope, program = main_module(), Program(source, texts)
    program.remember()
    code = program.guarded(lambda: program.execute(scope)) or 0
    threading = sys.modules.get('threading')
    if threading is not None:
        code = program.guarded(threading._shutdown) or code
    code = program.guarded(ATEXIT) or code
    return 120 if flush() and code == 0 else code


def limit_cpu(seconds):
    """The kernel's own limit, counted from now: it acts when the pool cannot."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


class Header:
    """What comes before a source text: 16 bytes of a cell's token, 8 of seed, 4 of CPU seconds, 4 of length, little-endian."""
    SIZE = 32

    def __init__(self, data):
        number = lambda a, b: int.from_bytes(data[a:b], 'little')
        self.token, self.seed, self.cpu, self.length = data[:16], number(16, 24), number(24, 28), number(28, 32)


def serve_call(entropy, texts):
    parts = []
    while part := os.read(3, 1 << 20):
        parts.append(part)
    os.close(3)
    data = b''.join(parts)
    if len(data) < Header.SIZE:
        EXIT(0)  # the pool closed this slot unused
    header = Header(data)
    limit_cpu(header.cpu)
    entropy.reseed(header.seed)
    EXIT(interpret(data[Header.SIZE:].decode('utf-8', 'replace'), texts))


class Cells:
    """The channel of a session: a header with the three streams of a cell and its source go in, token and exit code out."""

    def __init__(self):
        import _socket
        self.socket = _socket.socket(fileno=3)

    def next(self):
        size = 3 * 4
        try:
            data, control, *_ = self.socket.recvmsg(Header.SIZE, 32 + size)
        except OSError:
            EXIT(1)
        if not data:
            EXIT(0)  # the session is closed
        data += self.rest(Header.SIZE - len(data))
        fds = b''.join(c[2] for c in control)
        if len(fds) != size:
            EXIT(1)  # no descriptors are left: the cell before has taken them all
        for stream in range(3):
            fd = int.from_bytes(fds[4 * stream:4 * stream + 4], sys.byteorder)
            os.dup2(fd, stream)
            os.close(fd)
        header = Header(data)
        return header, self.rest(header.length).decode('utf-8', 'replace')

    def rest(self, n):
        data = b''
        while len(data) < n:
            part = self.socket.recv(min(n - len(data), 1 << 20))
            if not part:
                EXIT(0)
            data += part
        return data

    def end(self, header, code):
        try:
            self.socket.send(header.token + bytes([code]))
        except OSError:
            EXIT(code)  # the cell closed the channel: the session ends with it


def serve_session(entropy, texts):
    """One namespace for every cell. Threads and children go on in the cells that follow; between cells all are stopped."""
    cells, scope, number = Cells(), main_module(), 0
    while True:
        header, source = cells.next()
        number += 1
        if number == 1:
            entropy.reseed(header.seed)
        limit_cpu(header.cpu)
        sys.stdin = sys.__stdin__ = open(0, encoding='utf-8', errors='surrogateescape', closefd=False)
        program = Program(source, texts, f'<cell {number}>')
        program.remember()
        code = program.guarded(lambda: program.execute(scope)) or 0
        cells.end(header, 120 if flush() and code == 0 else code)


# ---- the zygote

class Config(ctypes.Structure):
    _pack_ = 1
    _fields_ = [('bpf', ctypes.c_void_p), ('bpf_len', ctypes.c_uint32), ('landlock_abi', ctypes.c_uint32), ('range', ctypes.c_uint32),
                ('namespaces', ctypes.c_uint32), ('data_base', ctypes.c_uint64)]


def fail(text):
    os.write(3, b'E' + text.encode())
    EXIT(1)


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


# What programs mostly do, once before they are forked: it fills caches and lets the interpreter specialise its bytecode, so
# that calls copy fewer pages. It runs with the same seeds in every zygote, so a replay finds the same state.
REHEARSALS = {
    'sys': """
import math
def f(n):
    return sum(i * i for i in range(n) if i % 2)
class A:
    def __init__(self): self.v = {str(i): i for i in range(5)}
a, out = A(), []
for i in range(40):
    out.append(f'{f(i)} {math.sqrt(i):.3f} {a.v!r:>10}')
    try: a.w
    except AttributeError as e: out.append(str(e))
print(len(sorted(out)), max(out))
a.v""",
    'fractions': 'from fractions import Fraction\nprint(Fraction(1, 3) + Fraction(1, 6))',
    'numpy': """
import numpy as np
print(np.linalg.det(np.eye(3)), np.linalg.eigvals(np.eye(3)), np.random.default_rng(0).random(3).mean(), np.arange(9).reshape(3, 3) @ np.ones(3))""",
    'scipy.optimize': 'from scipy.optimize import brentq\nprint(brentq(lambda x: x * x - 2, 0, 2))',
    'sympy': """
import sympy as sp
x, y, n, k = sp.symbols('x y n k')
m = sp.symbols('m', integer=True, positive=True)
for f in (lambda: sp.solve(x**2 - 3*x + 2, x), lambda: sp.solve(x**3 - 7*x + 6, x), lambda: sp.solve([x + y - 3, x - y - 1], [x, y]),
          lambda: sp.simplify(sp.sin(x)**2 + sp.cos(x)**2), lambda: sp.simplify(sp.summation(m, (m, 1, n))), lambda: sp.summation(2*k + 1, (k, 1, n)),
          lambda: sp.integrate(sp.cos(x)**3, (x, 0, 1)), lambda: sp.integrate(x * sp.exp(x), x), lambda: sp.factor(x**3 - 1), lambda: sp.expand((x + y)**4),
          lambda: (sp.factorint(1000730021), sp.divisors(5040), sp.isprime(1000003), sp.totient(999)), lambda: sp.N(sp.sqrt(2), 30),
          lambda: sp.sympify('1/2 + sqrt(3)'), lambda: sp.limit(sp.sin(x) / x, x, 0), lambda: sp.diff(x**3 * sp.log(x), x), lambda: sp.Matrix([[1, 2], [3, 4]]).eigenvals(),
          lambda: sp.nsimplify(0.5), lambda: sp.Rational(1, 3) + sp.sqrt(8), lambda: sp.gcd(12, 18), lambda: sp.binomial(10, 3), lambda: sp.latex(x / y),
          lambda: sp.solveset(sp.Eq(x**2, 2), x), lambda: sp.series(sp.exp(x), x, 0, 4), lambda: sp.trigsimp(2 * sp.sin(x) * sp.cos(x))):
    print(f())""",
}


def rehearse(texts):
    out = sys.stdout
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding='utf-8', line_buffering=True)
    try:
        for name, source in REHEARSALS.items():
            if name in sys.modules:
                for _ in range(2):
                    Program(source, texts).execute({'__name__': '__main__', '__builtins__': __builtins__})
    except Exception as error:
        fail(f'rehearsal of {name}: {type(error).__name__}: {error}')
    finally:
        sys.stdout = out


def freeze():
    """Leaves the heap as the calls will find it, and its pages so that a fork of them is cheap."""
    gc.collect()
    gc.freeze()
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for start, end, rights, path in mappings():
        if rights == 'rw-p' and path in ('', '[heap]'):
            collapse(libc, start, end)
        elif rights == 'r-xp' and os.path.basename(path).startswith(('python3', 'libc.', 'ld-linux')):
            keep_entries(libc, start, end)  # of libraries with more text than a call touches it would cost more than it saves


def mappings():
    with open('/proc/self/maps') as f:
        rows = [line.split(None, 5) for line in f]
    for r in rows:
        start, end = (int(x, 16) for x in r[0].split('-'))
        yield start, end, r[1], r[5].strip() if len(r) > 5 else ''


def collapse(libc, start, end):
    """Huge pages: a fork copies one entry for 512 pages, and a write still copies 4 KiB. Where the kernel cannot, nothing changes."""
    huge, MADV_COLLAPSE = 2 << 20, 25
    start, end = -(-start // huge) * huge, end // huge * huge
    if start < end:
        libc.madvise(start, end - start, MADV_COLLAPSE)


def keep_entries(libc, start, end):
    """One private copy in a mapping of a file makes fork copy its page table entries, so that calls do not fault for program text."""
    READ, WRITE, EXEC = 1, 2, 4
    if libc.mprotect(start, end - start, READ | WRITE | EXEC) == 0:
        byte = ctypes.c_char.from_address(start)
        byte.value = byte.value
        libc.mprotect(start, end - start, READ | EXEC)


def data_segment():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[5]) * os.sysconf('SC_PAGESIZE')


def spawn_loop(options):
    """Serves spawn requests; returns in the processes it forks, True in that of a session."""
    with open('/sbx/filter.bpf', 'rb') as f:
        bpf = f.read()
    filter_program = ctypes.create_string_buffer(bpf, len(bpf) + 1)
    config = Config(ctypes.addressof(filter_program), len(bpf), options['landlock_abi'], options['range'], options['namespaces'], data_segment())
    serve = ctypes.PyDLL('/sbx/shim.so').sbx_serve
    freeze()
    role = serve(ctypes.byref(config))
    if role < 0:
        EXIT(0)
    return role == 1


def subprocess_limits(plain):
    for name, value in plain['limits'].items():
        which = getattr(resource, 'RLIMIT_' + name)
        hard = resource.getrlimit(which)[1]
        value += data_segment() if name == 'DATA' else 0
        value = value if hard < 0 else min(value, hard)
        resource.setrlimit(which, (value, value))


def main():
    options = json.loads(os.environ.pop('SANDBOX_CONFIG'))
    plain, texts = options.get('plain'), Texts(options['texts'])
    sys.path[:] = ['/tmp' if plain is None else os.getcwd()] + [p for p in sys.path if p.startswith('/usr/')]
    sys.argv = ['main.py']
    clock, entropy = Clock(), Entropy()
    clock.install()
    entropy.install()  # before the imports: SymPy numbers its dummies from a random one
    entropy.reseed(0)
    preload(options['preload'])
    prepare_streams()
    if plain is None:
        rehearse(texts)
        clock.ns = EPOCH_NS
        session = spawn_loop(options)
    else:
        subprocess_limits(plain)
        session = plain['session']
    (serve_session if session else serve_call)(entropy, texts)


import __future__
import atexit
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag
ATEXIT = atexit._run_exitfuncs
main()
