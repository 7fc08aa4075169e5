package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestAPoolWeighsAsMuchAsItsCalls(t *testing.T) {
	c, err := openCgroups()
	if err != nil {
		t.Skipf("no cgroups: %v", err)
	}
	defer c.close()
	found := false
	for _, dir := range c.dirs {
		for name, one := range map[string]int{"cpu.shares": 1024, "cpu.weight": 100} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			found = true
			if got, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || got < 2*one {
				t.Errorf("%s of the pool is %q, expected more than the %d of one process", name, text, one)
			}
		}
	}
	if !found {
		t.Skip("no cpu controller")
	}
}
