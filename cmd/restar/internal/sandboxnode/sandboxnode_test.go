package sandboxnode

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/client"
	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

func defaults(t *testing.T, args ...string) Options {
	t.Helper()
	var o Options
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Register(fs)
	if os.Geteuid() != 0 {
		args = append([]string{"--isolation=B"}, args...)
	}
	if err := fs.Parse(append(args, "--listen=127.0.0.1:0", "--preload=lite", "--json")); err != nil {
		t.Fatal(err)
	}
	return o
}

// serve starts a node and returns its URL, and how to stop it.
func serve(t *testing.T, o Options) (url, tier string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { err := Serve(ctx, w, o); w.CloseWithError(io.EOF); ended <- err }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(<-ended)
	}
	var said map[string]string
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		t.Fatal(err)
	}
	return said["url"], said["isolation_tier"], func() error { cancel(); return <-ended }
}

func TestANodeServesBothInterfacesAndDrains(t *testing.T) {
	url, tier, stop := serve(t, defaults(t, "--text-located={line}: {type}"))
	c, err := client.New(client.Options{Endpoints: []string{url}, Tier: sandbox.Tier(tier)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := c.Run(ctx, sandbox.Call{ID: "x", Code: "40 + 2", Limits: sandbox.Limits{CPU: 30 * time.Second}}); err != nil || r.Stdout != "42\n" || r.Tier != sandbox.Tier(tier) {
		t.Errorf("native: %+v, %v", r, err)
	}
	if r, err := c.Run(ctx, sandbox.Call{ID: "x", Code: "1 / 0"}); err != nil || r.Stderr != "1: ZeroDivisionError" {
		t.Errorf("a text of the operator's: %+v, %v", r, err)
	}
	for path, want := range map[string]string{"/run": `"stdout":"1\n"`, "/metrics": "restar_sandbox_pool_slots_ready"} {
		var r *http.Response
		if path == "/run" {
			r, err = http.Post(url+path, "application/json", strings.NewReader(`{"type":"python","solution":"print(1)"}`))
		} else {
			r, err = http.Get(url + path)
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %.300s, expected %s", path, body, want)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("draining: %v", err)
	}
}

func TestAnInsecureNodeSaysSoAndRecipesRefuseIt(t *testing.T) {
	url, tier, stop := serve(t, defaults(t, "--insecure"))
	if tier != string(sandbox.TierNone) {
		t.Errorf("it says tier %q", tier)
	}
	c, err := client.New(client.Options{Endpoints: []string{url}, Tier: sandbox.TierB})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Await(ctx); err != nil {
		t.Errorf("it is not ready: %v", err)
	}
	if r, err := c.Run(ctx, sandbox.Call{Code: "1"}); err == nil || !strings.Contains(err.Error(), "wants isolation B") {
		t.Errorf("a rollout got %+v, %v", r, err)
	}
	if err := stop(); err != nil {
		t.Errorf("draining: %v", err)
	}
}

func TestMistakesOfTheUserAreNamed(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"--isolation=C", "expected A or B"}, {"--running=2", "at least 3"}, {"--drain=0s", "--drain"}, {"--hold-mb=0", "--hold-mb"},
	} {
		if err := Serve(t.Context(), io.Discard, defaults(t, c.flag)); fault.Code(err) != fault.User || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gave %v", c.flag, err)
		}
	}
	o := defaults(t)
	o.Listen = "nowhere.invalid:1"
	if err := Serve(t.Context(), io.Discard, o); fault.Code(err) != fault.User || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an impossible address gave %v", err)
	}
}

func TestTheDoctorSaysWhatHolds(t *testing.T) {
	var out strings.Builder
	err := Doctor(t.Context(), &out, true)
	var r struct {
		Tier   string `json:"isolation_tier"`
		Layers []finding
	}
	if bad := json.Unmarshal([]byte(out.String()), &r); bad != nil || len(r.Layers) < 15 || r.Tier == "" || err != nil {
		t.Errorf("%v, %v: %s", err, bad, out.String())
	}
}
