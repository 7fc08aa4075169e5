package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The texts are rStar2-Agent's executor's, as recorded for the tool response of every case.
func TestOutputTextIsThePapersExecutors(t *testing.T) {
	p := startPool(t, Options{Preload: Lite()})
	for _, c := range []struct {
		name, code, stdin, stdout, stderr string
		status                            Status
		exit                              int
	}{
		{name: "printed", code: "print(1 + 1)", stdout: "2\n"},
		{name: "last expression is echoed", code: "x = 3\nx + 4", stdout: "7\n"},
		{name: "repr, not str", code: "'a\\n'", stdout: "'a\\n'\n"},
		{name: "printed and echoed", code: "print('a')\n'b'", stdout: "a\n'b'\n"},
		{name: "None is not echoed", code: "x = None\nx"},
		{name: "print returns None", code: "print('a')", stdout: "a\n"},
		{name: "an expression that is not last is not echoed", code: "1\nx = 2"},
		{name: "nothing", code: ""},
		{name: "a comment", code: "# nothing"},
		{name: "future flags reach the last expression", code: "from __future__ import annotations\nlambda: 1 and 2\n(lambda x: x)(5)", stdout: "5\n"},
		{name: "exception", code: "a=1\nb=a/0", stderr: "ZeroDivisionError at line 2: division by zero\n  b=a/0\n", status: Error, exit: 1},
		{name: "exception keeps what was printed", code: "print('x')\nraise ValueError('bad')", stdout: "x\n", stderr: "ValueError at line 2: bad\n  raise ValueError('bad')\n", status: Error, exit: 1},
		{name: "exception in a function", code: "def f():\n    return [][1]\nf()", stderr: "IndexError at line 2: list index out of range\n  return [][1]\n", status: Error, exit: 1},
		{name: "exception in a library", code: "import json\n\njson.loads('')", stderr: "JSONDecodeError at line 3: Expecting value: line 1 column 1 (char 0)\n  json.loads('')\n", status: Error, exit: 1},
		{name: "exception in the last expression", code: "x = 1\nx.y", stderr: "AttributeError at line 2: 'int' object has no attribute 'y'\n  x.y\n", status: Error, exit: 1},
		{name: "syntax error", code: "for i", stderr: "SyntaxError at line 1: invalid syntax (<unknown>, line 1)\n  for i\n", status: Error, exit: 1},
		{name: "syntax error in a later line", code: "x = 1\nif x\n  2", stderr: "SyntaxError at line 2: expected ':' (<unknown>, line 2)\n  if x\n", status: Error, exit: 1},
		{name: "syntax error of the compiler", code: "return 5", stderr: "SyntaxError at line 1: 'return' outside function (<unknown>, line 1)\n  return 5\n", status: Error, exit: 1},
		{name: "indentation", code: "  x = 1", stderr: "IndentationError at line 1: unexpected indent (<unknown>, line 1)\n  x = 1\n", status: Error, exit: 1},
		{name: "NUL in the source", code: "x = 1\x00", stderr: "ValueError: source code string cannot contain null bytes\n", status: Error, exit: 1},
		{name: "end of input", code: "input()", stderr: "EOFError at line 1: EOF when reading a line\n  input()\n", status: Error, exit: 1},
		{name: "input", code: "int(input()) + 1", stdin: "41\n", stdout: "42\n"},
		{name: "memory", code: "x = bytearray(8 << 30)", stderr: "MemoryError at line 1: \n  x = bytearray(8 << 30)\n", status: Error, exit: 1},
		{name: "exit code", code: "import sys\nsys.exit(3)", status: Error, exit: 3},
		{name: "exit code zero", code: "exit(0)"},
		{name: "exit with a text", code: "raise SystemExit('why')", stderr: "why\n", status: Error, exit: 1},
		{name: "beyond Exception", code: "class B(BaseException): pass\nraise B('x')", stderr: "B: x\n", status: Error, exit: 1},
		{name: "message that fails", code: "class E(Exception):\n  def __str__(self): 1/0\nraise E", stderr: "E at line 3: \n  raise E\n", status: Error, exit: 1},
		{name: "not UTF-8", code: "import sys\n_ = sys.stdout.buffer.write(b'a\\xffb')", stdout: "a\uFFFDb"},
		{name: "surrogate", code: "print('\\ud800')", stderr: "UnicodeEncodeError at line 1: 'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed\n  print('\\ud800')\n", status: Error, exit: 1},
		{name: "names", code: "print(__name__)\ndef f(): pass\nprint(f.__module__)", stdout: "__main__\n__main__\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runCall(t, p, Call{Code: c.code, Stdin: c.stdin})
			want := c.status
			if want == "" {
				want = Success
			}
			if r.Status != want || r.ExitCode != c.exit || r.Stdout != c.stdout || r.Stderr != c.stderr {
				t.Errorf("got %s, exit %d, stdout %q, stderr %q\nexpected %s, exit %d, stdout %q, stderr %q", r.Status, r.ExitCode, r.Stdout, r.Stderr, want, c.exit, c.stdout, c.stderr)
			}
		})
	}
}

func TestTimeoutKeepsWhatWasPrinted(t *testing.T) {
	p := startPool(t, Options{})
	r := runCall(t, p, Call{Code: "print('before')\nwhile True: pass", Limits: Limits{CPU: 300 * time.Millisecond}})
	if r.Status != Timeout || r.Stdout != "before\n" || r.CPU < 300*time.Millisecond {
		t.Errorf("got %+v, expected a time-out after the output", r)
	}
}

func TestABlockedCallTimesOutByWallTime(t *testing.T) {
	p := startPool(t, Options{})
	r := runCall(t, p, Call{Code: "import time\nprint('a')\ntime.sleep(1000)", Limits: Limits{Wall: 400 * time.Millisecond}})
	if r.Status != Timeout || r.Stdout != "a\n" || r.CPU > 300*time.Millisecond {
		t.Errorf("got %+v, expected a time-out that used no CPU", r)
	}
}

func TestCPUTimeOfTheWholeTreeCounts(t *testing.T) {
	p := startPool(t, Options{})
	for name, code := range map[string]string{
		"children that are waited for": "import os\nfor _ in range(4):\n  if os.fork() == 0:\n    for _ in range(10**9): pass\nfor _ in range(4): os.wait()",
		"orphans that hide":            "import os, time\nfor _ in range(4):\n  if os.fork() == 0:\n    if os.fork() == 0:\n      os.setsid()\n      while True: pass\n    os._exit(0)\ntime.sleep(1000)",
	} {
		r := runCall(t, p, Call{Code: code, Limits: Limits{CPU: 500 * time.Millisecond, Wall: time.Minute}})
		if r.Status != Timeout || r.CPU < 500*time.Millisecond {
			t.Errorf("%s: got %s after %v of CPU, expected a time-out by CPU", name, r.Status, r.CPU)
		}
	}
}

func TestOutputBeyondTheLimitIsCutAndMarked(t *testing.T) {
	p := startPool(t, Options{})
	r := runCall(t, p, Call{Code: "import sys\nprint('é' * 2000)\nsys.stderr.write('e' * 10)", Limits: Limits{OutputKB: 1}})
	if r.Status != Success || r.Stdout != strings.Repeat("é", 512) || !r.StdoutTruncated || r.StderrTruncated {
		t.Errorf("got %+v", r)
	}
	r = runCall(t, p, Call{Code: "print('a' + 'é' * 2000)", Limits: Limits{OutputKB: 1}})
	if r.Stdout != "a"+strings.Repeat("é", 511) {
		t.Errorf("a rune was cut: %q", r.Stdout[len(r.Stdout)-4:])
	}
	r = run(t, p, "while True: print('x' * 1000)")
	if r.Status != OutputLimit || len(r.Stdout) != 64<<10 {
		t.Errorf("a flood ended with %s and %d bytes kept", r.Status, len(r.Stdout))
	}
}

func TestLimitsOfACallReplaceThePools(t *testing.T) {
	p := startPool(t, Options{})
	r := runCall(t, p, Call{Code: "x = bytearray(400 << 20)\nlen(x)", Limits: Limits{MemoryMB: 600}})
	if r.Status != Success || r.Stdout != "419430400\n" {
		t.Errorf("with 600 MiB: %+v", r)
	}
	r = runCall(t, p, Call{Code: "x = bytearray(40 << 20)", Limits: Limits{MemoryMB: 32}})
	if !strings.HasPrefix(r.Stderr, "MemoryError at line 1") {
		t.Errorf("with 32 MiB: %+v", r)
	}
	r = runCall(t, p, Call{Code: "open('/tmp/x', 'w').write('x' * (1 << 20))", Limits: Limits{TmpKB: 512}})
	if r.Status != Error || !strings.HasPrefix(r.Stderr, "OSError") {
		t.Errorf("with 512 KiB of files: %+v", r)
	}
	fork := "import os, time\nn = 0\ntry:\n  while n < 50:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: pass\nn"
	if r = runCall(t, p, Call{Code: fork, Limits: Limits{Pids: 8}}); r.Stdout != "7\n" {
		t.Errorf("with 8 processes the program forked %q", r.Stdout)
	}
	if r = run(t, p, fork); r.Stdout != "50\n" {
		t.Errorf("with the default the program forked %q", r.Stdout)
	}
}

func TestTextsOfFailuresAreConfiguration(t *testing.T) {
	const code = "def f():\n    return {}['{type} {source}']\n\nf()"
	for _, c := range []struct {
		texts          Texts
		code           string
		stdout, stderr string
	}{
		{Texts{Located: "{line}|{type}|{message}|{source}|{other}|{"}, code, "", "2|KeyError|'{type} {source}'|return {}['{type} {source}']|{other}|{"},
		{Texts{Unlocated: "<{type}>"}, "class B(BaseException): pass\nraise B('x')", "", "<B>"},
		{Texts{Traceback: true}, "x = 1\n\nx / 0", "", "Traceback (most recent call last):\n  File \"<unknown>\", line 3, in <module>\nZeroDivisionError: division by zero\n"},
		{Texts{NoEcho: true}, "print(1)\n2", "1\n", ""},
	} {
		r := run(t, startPool(t, Options{Texts: c.texts, Zygotes: 1, Warm: 1}), c.code)
		if r.Stdout != c.stdout || r.Stderr != c.stderr {
			t.Errorf("%+v: got %q and %q, expected %q and %q", c.texts, r.Stdout, r.Stderr, c.stdout, c.stderr)
		}
	}
}

// A class changes the time limits only, so its calls run on warm slots.
func TestClassesAreTimeLimits(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	for class, want := range map[string]time.Duration{"S": 5 * time.Second, "M": 30 * time.Second, "L": time.Minute} {
		l, err := ClassLimits(class)
		if err != nil || l.CPU != want || l.Wall != want {
			t.Errorf("class %s is %+v, %v", class, l, err)
		}
		if l.withDefaults(p.opt.Limits).slotLimits() != p.opt.Limits.slotLimits() {
			t.Errorf("class %s needs a slot of its own", class)
		}
	}
	if _, err := ClassLimits("XL"); err == nil || !strings.Contains(err.Error(), `"XL"`) {
		t.Errorf("got %v", err)
	}
}

// The kernel's own limit is behind the pool's, for a pool that cannot act.
func TestTheKernelLimitsCPUTimeToo(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	const code = "import resource\nresource.getrlimit(resource.RLIMIT_CPU)[0]"
	for _, cpu := range []time.Duration{time.Second, 90 * time.Second} {
		r := runCall(t, p, Call{Code: code, Limits: Limits{CPU: cpu, Wall: 100 * time.Second}})
		if want := fmt.Sprintln(backstop(cpu)); r.Stdout != want {
			t.Errorf("with %v the limit is %q, expected %q", cpu, r.Stdout, want)
		}
	}
}

func TestLimitsOutOfRangeAreNamed(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	_, err := p.Run(deadline(t), Call{Limits: Limits{MemoryMB: 1}})
	if err == nil || !strings.Contains(err.Error(), "Limits.MemoryMB is 1, expected 8") {
		t.Errorf("got %v", err)
	}
}
