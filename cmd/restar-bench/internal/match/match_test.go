package match

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start starts a contestant that is a shell script.
func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), Spec{Name: "peer", Command: []string{"sh", "-c", script}}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// counting answers the numbers of a list in turn, as seconds.
func counting(seconds string) string {
	return `echo '{"version": "7"}'; for s in ` + seconds + `; do read line || exit 0; echo "{\"seconds\": $s, \"rate\": $s}"; done`
}

func TestAContestantAnswersItsRequestsInOrder(t *testing.T) {
	p := start(t, `echo '{"version": "7"}'; while read x; do echo "{\"seconds\": $x}"; done`)
	if p.Version != "7" {
		t.Errorf("version %q, want 7", p.Version)
	}
	for _, want := range []string{"3", "1.5"} {
		a, err := p.Ask(t.Context(), want, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(json.Number(mustJSON(t, a.Seconds)).String(), ".0"); got != want {
			t.Errorf("request %s was answered with %s", want, got)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAContestantThatDiesIsToldOfInItsOwnWords(t *testing.T) {
	_, err := Start(t.Context(), Spec{Name: "peer", Command: []string{"sh", "-c", "echo no such library >&2; exit 3"}}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "peer") || !strings.Contains(err.Error(), "no such library") {
		t.Errorf("error %v, want the peer's name and words", err)
	}
	p := start(t, `echo '{}'; read x; echo broken >&2; exit 3`)
	if _, err := p.Ask(t.Context(), "1", time.Minute); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v, want the contestant's words", err)
	}
}

func TestAContestantThatIsSilentIsGivenUp(t *testing.T) {
	p := start(t, `echo '{}'; while read x; do true; done`)
	if _, err := p.Ask(t.Context(), "1", 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "no answer for 50ms") {
		t.Errorf("error %v, want how long was waited", err)
	}
}

func TestTheBestRoundCountsAndTheFirstOneDoesNot(t *testing.T) {
	a, b := start(t, counting("1 5 4 6")), start(t, counting("9 8 7 7.5"))
	entries := []*Entry{{Process: a, Request: "x"}, {Process: b, Request: "x"}}
	if err := Play(t.Context(), entries, Rules{Rounds: 3, Budget: time.Minute, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []Answer{{Seconds: 4, Rate: 6}, {Seconds: 7, Rate: 8}} {
		if got := entries[i].Best; got.Seconds != want.Seconds || got.Rate != want.Rate {
			t.Errorf("entry %d: best %v, want %v", i, got, want)
		}
	}
	if f := Fastest(entries...); f != entries[0] {
		t.Error("the fastest entry is not the one with the shortest time")
	}
}

func TestAContestantThatFailsPlaysNoMoreAndTheOthersGoOn(t *testing.T) {
	a, b := start(t, counting("1 2")), start(t, counting("4 3 3 3"))
	entries := []*Entry{{Process: a, Request: "x"}, {Process: b, Request: "x"}}
	if err := Play(t.Context(), entries, Rules{Rounds: 3, Budget: time.Minute, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if entries[0].Failed == nil || entries[0].Best.Seconds != 2 {
		t.Errorf("the failed entry has error %v and %v s, want its error and the 2 s of before", entries[0].Failed, entries[0].Best.Seconds)
	}
	if entries[1].Failed != nil || entries[1].answers != 3 {
		t.Errorf("the other entry has error %v and %d answers, want 3", entries[1].Failed, entries[1].answers)
	}
}

func TestAWayThatIsMuchSlowerIsNotPlayedAgain(t *testing.T) {
	p := start(t, counting("90 1 2 10 2"))
	entries := []*Entry{{Process: p, Request: "1"}, {Process: p, Request: "2"}}
	if err := Play(t.Context(), entries, Rules{Rounds: 2, Budget: time.Minute, Wait: time.Minute, Slower: 1.3}); err != nil {
		t.Fatal(err)
	}
	if entries[0].answers != 2 || entries[1].answers != 1 {
		t.Errorf("%d and %d answers, want 2 and 1: one warms up, one is compared", entries[0].answers, entries[1].answers)
	}
}

func TestWhatWasNotMeasuredHasNoFigure(t *testing.T) {
	f := Figures{}
	f.Set("ours", 1234.5678)
	f.Set("nothing", 0)
	f.Ratio("ratio", "ours", "theirs")
	f.Least("least", "ours", "theirs")
	f.Set("theirs", 0.123456)
	f.Ratio("measured", "ours", "theirs")
	path := filepath.Join(t.TempDir(), "sub", "figures.json")
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if len(got) != 3 || got["ours"] != 1235 || got["theirs"] != 0.1235 || got["measured"] != 10000 {
		t.Errorf("figures %v, want ours 1235, theirs 0.1235, measured 10000 and no others", got)
	}
}

func TestLogsGetALineForEachPieceOfWorkWithTheTimeLeft(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := NewProgress(&out, 100, func() time.Time { return now })
	p.Begin("one")
	now = now.Add(50 * time.Second)
	p.Reach(25)
	p.Begin("two")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	// The first quarter took twice as long as planned, so the rest will.
	if len(lines) != 2 || !strings.Contains(lines[0], "one, about 1m40s left") || !strings.Contains(lines[1], "two, about 2m30s left") {
		t.Errorf("lines %q", lines)
	}
}
