package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// equalityCase is a row of a public test suite with its expectation and what two released verifiers said about it.
type equalityCase struct {
	Gold, Prediction string
	Expected         bool
	Source           string
	Options          struct{ Precision int }
	MathVerify       *bool `json:"observed_math_verify"`
	RStar2           *bool `json:"observed_rstar2_reward"`
}

// disagreement is a row on which a verdict differs from what it is compared with, and why that is right.
type disagreement struct {
	Row    int    `json:"row"`
	Gold   string `json:"gold"`
	Reason string `json:"reason"`
}

type disagreements struct {
	Contradictory []struct {
		Rows []int  `json:"rows"`
		Name string `json:"name"`
	} `json:"contradictory"`
	Native   []disagreement `json:"native"`
	Released []disagreement `json:"released"`
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loadCases(t testing.TB) ([]equalityCase, disagreements) {
	t.Helper()
	var file struct{ Cases []equalityCase }
	var known disagreements
	readJSON(t, "answer_equality.json", &file)
	readJSON(t, "disagreements.json", &known)
	if len(file.Cases) != 312 {
		t.Fatalf("%d cases, want 312", len(file.Cases))
	}
	return file.Cases, known
}

// judgeCases judges every row natively.
func judgeCases(cases []equalityCase) []Verdict {
	verdicts := make([]Verdict, len(cases))
	for i, c := range cases {
		verdicts[i] = Options{Prose: true, Decimals: c.Options.Precision}.Judge(c.Gold, c.Prediction)
	}
	return verdicts
}

// tally counts agreement by source.
type tally map[string][2]int

func (a tally) count(key string, agree bool) {
	n := a[key]
	n[1]++
	if agree {
		n[0]++
	}
	a[key] = n
}

func (a tally) share(key string) float64 { return float64(a[key][0]) / float64(a[key][1]) }

func (a tally) String() string {
	var b strings.Builder
	keys := make([]string, 0, len(a))
	for k := range a {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "%-64s %3d of %3d  %5.1f%%\n", k, a[k][0], a[k][1], 100*a.share(k))
	}
	return b.String()
}

const (
	everyRow = "all rows"
	agreed   = "rows where Math-Verify agrees with the expectation"
	negative = "rows expected to be unequal"
)

func TestPublicCasesAreJudgedAsTheirSuitesExpect(t *testing.T) {
	cases, known := loadCases(t)
	checkCases(t, cases, known, judgeCases(cases))
}

func TestSympyTakesNoPublicCaseBack(t *testing.T) {
	cases, known := loadCases(t)
	verdicts := make([]Verdict, len(cases))
	byPrecision := map[int][]int{}
	for i, c := range cases {
		byPrecision[c.Options.Precision] = append(byPrecision[c.Options.Precision], i)
	}
	for precision, rows := range byPrecision {
		v := NewVerifier(pool(t), Options{Prose: true, Decimals: precision})
		pairs := make([]Pair, len(rows))
		for k, i := range rows {
			pairs[k] = Pair{cases[i].Gold, cases[i].Prediction}
		}
		for k, verdict := range v.JudgeAll(deadline(t), pairs) {
			verdicts[rows[k]] = verdict
		}
		v.Close()
	}
	checkCases(t, cases, known, verdicts)
}

// checkCases demands the shares, and that the listed disagreements are the ones there are.
func checkCases(t *testing.T, cases []equalityCase, known disagreements, verdicts []Verdict) {
	t.Helper()
	excluded := map[int]bool{}
	for _, pair := range known.Contradictory {
		if pair.Name == "" || len(pair.Rows) != 2 || cases[pair.Rows[0]].Expected == cases[pair.Rows[1]].Expected {
			t.Errorf("%+v names no contradictory pair", pair)
		}
		for _, row := range pair.Rows {
			excluded[row] = true
		}
	}
	counts := tally{}
	for i, c := range cases {
		agree := (verdicts[i].Outcome == Correct) == c.Expected
		checkListed(t, known.Native, i, c, agree || excluded[i], fmt.Sprintf("expected %v, verdict %+v", c.Expected, verdicts[i]))
		if excluded[i] {
			continue
		}
		counts.count(c.Source, agree)
		counts.count(everyRow, agree)
		if c.MathVerify != nil && *c.MathVerify == c.Expected {
			counts.count(agreed, agree)
		}
		if !c.Expected {
			counts.count(negative, agree)
		}
		if want, ok := Integer(Find(c.Gold)); ok && !c.Expected && verdicts[i].Outcome == Correct {
			t.Errorf("row %d: a false positive on the integer %v: %q", i, want, brief(c.Prediction))
		}
	}
	t.Logf("agreement by source:\n%s", counts)
	for key, least := range map[string]float64{everyRow: 0.92, agreed: 0.97} {
		if counts.share(key) < least {
			t.Errorf("%s: %.1f%% agree, want at least %.0f%%", key, 100*counts.share(key), 100*least)
		}
	}
}

// checkListed demands a reason for a disagreement, and that a listed row still disagrees.
func checkListed(t *testing.T, list []disagreement, row int, c equalityCase, agree bool, what string) {
	t.Helper()
	at := slices.IndexFunc(list, func(d disagreement) bool { return d.Row == row })
	switch {
	case at < 0 && !agree:
		t.Errorf("row %d is no listed disagreement: %s; gold %q, prediction %q", row, what, brief(c.Gold), brief(c.Prediction))
	case at >= 0 && (list[at].Reason == "" || list[at].Gold != c.Gold):
		t.Errorf("row %d is listed without a reason or with another reference than %q", row, c.Gold)
	case at >= 0 && agree:
		t.Errorf("row %d is listed as a disagreement and agrees: %s", row, what)
	}
}

func TestCompatibilityReproducesTheReleasedVerdicts(t *testing.T) {
	cases, known := loadCases(t)
	pairs := make([]Pair, len(cases))
	for i, c := range cases {
		pairs[i] = Pair{c.Gold, c.Prediction}
	}
	v := NewVerifier(pool(t), Options{})
	defer v.Close()
	counts := tally{}
	for i, verdict := range v.CompatAll(deadline(t), pairs) {
		c := cases[i]
		if c.RStar2 == nil {
			continue
		}
		agree := (verdict.Outcome == Correct) == *c.RStar2
		counts.count(c.Source, agree)
		counts.count(everyRow, agree)
		checkListed(t, known.Released, i, c, agree, fmt.Sprintf("released %v, compatibility %+v", *c.RStar2, verdict))
	}
	t.Logf("agreement with the released verifier by source:\n%s", counts)
	if counts.share(everyRow) < 0.9 {
		t.Errorf("%.1f%% agree with the released verifier, want at least 90%%", 100*counts.share(everyRow))
	}
}
