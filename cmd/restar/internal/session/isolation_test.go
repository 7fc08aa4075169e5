package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
)

func TestAWorkerWithoutIsolationNamesTheLayerAndItsFix(t *testing.T) {
	for name, c := range map[string]struct {
		report sandbox.Report
		want   []string
	}{
		"a layer":    {sandbox.Report{Layers: []sandbox.Layer{{Name: "network", OK: true}, {Name: "landlock", Fix: "boot with landlock"}}}, []string{"landlock", "boot with landlock"}},
		"no sandbox": {sandbox.Report{Err: errors.New("no user namespaces: sysctl")}, []string{"no user namespaces: sysctl"}},
	} {
		err := isolated(t.Context(), func(context.Context) sandbox.Report { return c.report })
		if fault.Code(err) != fault.User {
			t.Errorf("%s: error %v, want one that the user can mend", name, err)
			continue
		}
		for _, want := range append(c.want, "restar doctor") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: message lacks %q: %v", name, want, err)
			}
		}
	}
	good := sandbox.Report{Tier: sandbox.TierB, Layers: []sandbox.Layer{{Name: "network", OK: true}}}
	if err := isolated(t.Context(), func(context.Context) sandbox.Report { return good }); err != nil {
		t.Error(err)
	}
}
