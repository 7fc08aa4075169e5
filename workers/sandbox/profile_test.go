package sandbox

import (
	"errors"
	"strings"
	"testing"
)

func TestTheImportsOfACallChooseItsZygote(t *testing.T) {
	kinds, libraries := profiles([]string{"math", "numpy", "sympy.core"})
	for code, full := range map[string]bool{"import math": false, "import numpy as np": true, "from sympy import *": true, "x = 'numpy'": true,
		"numpyx = 1": false, "my_numpy": false, "import mpmath": true, "": false, "snumpy, numpy": true} {
		if len(kinds) > 1 && mentions(code, libraries) != full {
			t.Errorf("%q goes to the full zygote: %v, expected %v", code, !full, full)
		}
	}
	if kinds, _ := profiles(Lite()); len(kinds) != 1 || len(kinds[0].preload) != len(Lite()) {
		t.Errorf("a list of standard modules gives %v", kinds)
	}
	needModule(t, "numpy")
	p := startPool(t, Options{Preload: []string{"math", "numpy"}, Zygotes: 1, Warm: 1})
	for code, want := range map[string]string{"import math": Small, "import numpy\nnumpy.ones(2)": Full} {
		if r := run(t, p, code); r.Profile != want || r.Status != Success {
			t.Errorf("%q ran in %q: %+v", code, r.Profile, r)
		}
	}
	if r := run(t, p, "import sys\n'num' + 'py' in sys.modules"); r.Stdout != "False\n" {
		t.Errorf("the lite zygote has numpy: %+v", r)
	}
}

func TestAMissingPreloadNamesItsPackage(t *testing.T) {
	_, err := Start(deadline(t), Options{Tier: testTier(), Zygotes: 1, Preload: []string{"math", "no_such_module"}})
	if err == nil || !strings.Contains(err.Error(), `"no_such_module"`) || !strings.Contains(err.Error(), "python3-no-such-module") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, ErrInfrastructure) {
		t.Errorf("%v: a missing module does not go away by itself", err)
	}
}

func TestAnInterpreterOutsideTheSystemIsRefused(t *testing.T) {
	for _, path := range []string{"/nonexistent/python3", "/proc/self/exe"} {
		if _, err := Start(deadline(t), Options{Python: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestScientificLibrariesArePreloaded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of a core")
	}
	needModule(t, "scipy.optimize")
	needModule(t, "sympy")
	p := startPool(t, Options{Preload: Scientific(), Zygotes: 1})
	r := run(t, p, "import numpy as np, scipy.optimize as o, sympy as s\nx = s.symbols('x')\nprint(s.solve(x**2 - 5*x + 6, x), np.linalg.det(np.eye(3)), round(o.brentq(lambda v: v*v - 2, 0, 2), 6))")
	if r.Stdout != "[2, 3] 1.0 1.414214\n" {
		t.Errorf("got %+v", r)
	}
	const state = "import sympy as s, numpy as np\nx, y = s.symbols('x y')\nprint(s.Dummy()._hashable_content(), {x, y, x + y}, id(s.sin), id(object()), np.random.rand())"
	want := run(t, p, state)
	if again := run(t, startPool(t, Options{Preload: Scientific(), Zygotes: 1, Warm: 1}), state); again.Stdout != want.Stdout || want.Status != Success {
		t.Errorf("another zygote gives %q, the first %q: imports have to be reproducible too", again.Stdout, want.Stdout)
	}
	if r := run(t, p, "import numpy as np\nnp.ones(1 << 29)"); r.Status != Error || !strings.Contains(r.Stderr, "MemoryError at line 2") {
		t.Errorf("4 GiB of ones gave %+v", r)
	}
}
