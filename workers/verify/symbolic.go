package verify

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

//go:embed symbolic.py
var program string

const (
	// secondsEach is the CPU time of one check. Public answers take tens of milliseconds; what takes longer seldom ends.
	secondsEach = 2
	// batchSize bounds a batch, so that its time and its output are bounded.
	batchSize = 16
	// maxQuestions bounds the open pairs of one judgement that are asked.
	maxQuestions = 24
)

// Opener opens sessions of a sandbox.
type Opener interface {
	Open(ctx context.Context, opt sandbox.SessionOptions) (sandbox.Session, error)
}

// SandboxOptions returns the options of a pool whose sessions can check symbolic equality: sympy is imported once.
func SandboxOptions(tier sandbox.Tier) sandbox.Options {
	return sandbox.Options{Tier: tier, Zygotes: 1, Warm: 1, Preload: []string{"json", "signal", "sympy"}, Limits: checkLimits()}
}

func checkLimits() sandbox.Limits {
	const spare = 4 // for the program's own work, so that a batch of slow checks still ends by itself
	cpu := time.Duration(secondsEach*(batchSize+spare)) * time.Second
	return sandbox.Limits{CPU: cpu, Wall: 2 * cpu, MemoryMB: 512, Pids: 4, TmpKB: 1 << 10, OutputKB: 64}
}

// checker is a session that runs the verifier's program.
type checker struct {
	opener  Opener
	session sandbox.Session // nil until it is needed, and after it has ended
}

// finding is what the program said about one pair.
type finding struct {
	equal  bool
	reason string        // why it is open
	failed bool          // a time-out or a failure of the machine: asking again may find a proof
	cpu    time.Duration // of the check
	known  bool
}

// check asks about every pair. A pair that takes the session down is open with its reason, and the pairs behind it are asked
// again in another session. A session that had ended before, or a sandbox that failed, is tried once more.
func (k *checker) check(ctx context.Context, questions []question) []finding {
	out := make([]finding, len(questions))
	pairs, ask := asTrees(questions, out)
	for again := true; len(ask) > 0; {
		now := ask[:min(len(ask), batchSize)]
		err := k.batch(ctx, now, pairs, out)
		done := 0
		for done < len(now) && out[now[done]].known {
			done++
		}
		switch {
		case ctx.Err() != nil:
			unanswered(out, ask[done:], ctx.Err())
			return out
		case done == 0 && again && (errors.Is(err, sandbox.ErrSessionEnded) || errors.Is(err, sandbox.ErrInfrastructure)):
			again = false
			continue
		case errors.Is(err, errNoSession):
			unanswered(out, ask[done:], err)
			return out
		case done < len(now):
			unanswered(out, now[done:done+1], err)
			done++
		}
		ask, again = ask[done:], true
	}
	return out
}

// asTrees writes the pairs as trees and returns the places of those that can be asked.
func asTrees(questions []question, out []finding) (pairs [][2]any, ask []int) {
	pairs = make([][2]any, len(questions))
	for i, q := range questions {
		gold, ok := tree(q.gold)
		pred, fine := tree(q.pred)
		if !ok || !fine {
			out[i] = finding{known: true, reason: "a part is not in the symbolic program's language, or too large to be computed"}
			continue
		}
		pairs[i] = [2]any{gold, pred}
		ask = append(ask, i)
	}
	return pairs, ask
}

// unanswered marks pairs that got no verdict.
func unanswered(out []finding, which []int, err error) {
	for _, i := range which {
		out[i] = finding{known: true, failed: true, reason: fmt.Sprintf("no verdict from the sandbox: %v", err)}
	}
}

// errNoSession matches the failure to start the program: other pairs will not fare better.
var errNoSession = errors.New("no session")

// batch asks about some pairs and stores what is said. The error tells why a pair has no finding.
func (k *checker) batch(ctx context.Context, which []int, pairs [][2]any, out []finding) error {
	if err := k.open(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNoSession, err)
	}
	nonce, input, err := request(which, pairs)
	if err != nil {
		return err
	}
	res, err := k.session.Run(ctx, sandbox.Call{ID: "verify", Code: "serve()", Stdin: input})
	spent := readRecords(res.Stderr, nonce, which, out)
	overhead := max(res.CPU-spent, 0) / time.Duration(len(which))
	for _, i := range which {
		if out[i].known {
			out[i].cpu += overhead
		}
	}
	switch {
	case err != nil:
		k.close()
		return err
	case res.SessionEnded || res.Status != sandbox.Success:
		k.close()
		return fmt.Errorf("the check ended with %s", res.Status)
	}
	return errors.New("the record is missing")
}

// open starts the program in a session unless one is running.
func (k *checker) open(ctx context.Context) error {
	if k.session != nil {
		return nil
	}
	s, err := k.opener.Open(ctx, sandbox.SessionOptions{ID: "verify", Limits: checkLimits()})
	if err != nil {
		return err
	}
	res, err := s.Run(ctx, sandbox.Call{ID: "verify program", Code: program})
	if err == nil && res.Status != sandbox.Success {
		err = fmt.Errorf("the verifier's program ended with %s: %s", res.Status, brief(res.Stderr))
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	k.session = s
	return nil
}

func (k *checker) close() {
	if k.session != nil {
		_ = k.session.Close()
		k.session = nil
	}
}

// request writes a batch. The nonce tells the records of this batch from everything else; it decides nothing.
func request(which []int, pairs [][2]any) (nonce, input string, err error) {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	nonce = hex.EncodeToString(raw)
	chosen := make([][2]any, len(which))
	for j, i := range which {
		chosen[j] = pairs[i]
	}
	data, err := json.Marshal(map[string]any{"nonce": nonce, "seconds": secondsEach, "pairs": chosen})
	return nonce, string(data), err
}

// readRecords stores the complete records of a batch and returns the CPU time that they tell of.
func readRecords(text, nonce string, which []int, out []finding) (spent time.Duration) {
	for _, line := range strings.SplitAfter(text, "\n") {
		f := strings.Fields(line)
		if !strings.HasSuffix(line, "\n") || len(f) != 4 || f[0] != nonce {
			continue
		}
		j, err := strconv.Atoi(f[1])
		micros, fail := strconv.ParseInt(f[3], 10, 64)
		if err != nil || fail != nil || j < 0 || j >= len(which) {
			continue
		}
		cpu := time.Duration(micros) * time.Microsecond
		spent += cpu
		out[which[j]] = finding{known: true, equal: f[2] == "equal", failed: f[2] == "timeout", reason: openReason(f[2]), cpu: cpu}
	}
	return spent
}

func openReason(said string) string {
	switch said {
	case "equal":
		return ""
	case "open":
		return "sympy found no proof"
	case "timeout":
		return fmt.Sprintf("sympy took more than %d s", secondsEach)
	}
	return "sympy failed with " + strings.TrimPrefix(said, "error:")
}
