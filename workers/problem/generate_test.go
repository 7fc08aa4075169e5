package problem

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var word = regexp.MustCompile(`[a-z]+|[0-9]+`)

func words(text string) []string { return word.FindAllString(strings.ToLower(text), -1) }

func grams(text string) []string {
	w := words(text)
	var out []string
	for i := 0; i+8 <= len(w); i++ {
		out = append(out, strings.Join(w[i:i+8], " "))
	}
	return out
}

func mustGenerate(t *testing.T, seed uint64, n int, split Split) []Problem {
	t.Helper()
	problems, err := Generate(seed, n, split)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

func TestSplitsShareNoTextAndNoRunOfEightWordsWhateverTheSeeds(t *testing.T) {
	sets := [][]Problem{
		mustGenerate(t, 1, 3000, Train), mustGenerate(t, 2, 1000, Test), mustGenerate(t, 3, 1000, HeldOut),
	}
	demos, err := Demonstrations(9, 3000, "python")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range demos {
		sets[0] = append(sets[0], Problem{Problem: d.Problem})
	}
	owner := map[string]int{}
	for set, problems := range sets {
		for _, p := range problems {
			for _, key := range append(grams(p.Problem), "whole text: "+strings.Join(words(p.Problem), " ")) {
				if other, ok := owner[key]; ok && other != set {
					t.Fatalf("sets %d and %d share %q (problem %q)", other, set, key, p.Problem)
				}
				owner[key] = set
			}
		}
	}
}

func TestSplitsShareNoNumbersWithinAKind(t *testing.T) {
	number := regexp.MustCompile(`[0-9]+`)
	owner := map[string]Split{}
	for _, split := range []Split{Train, Test, HeldOut} {
		for _, p := range mustGenerate(t, 7, 900, split) {
			kind := p.ID[strings.LastIndex(p.ID, "-")+1:]
			key := kind + " " + strings.Join(number.FindAllString(p.Problem, -1), " ")
			if other, ok := owner[key]; ok && other != split {
				t.Fatalf("%s and %s share the numbers %q", other, split, key)
			}
			owner[key] = split
		}
	}
}

func TestEveryRunOfEightWordsOfAWordingHoldsAllItsNumbers(t *testing.T) {
	for _, f := range families() {
		for _, w := range f.wordings {
			marks := []string{"111", "222", "333"}
			text := strings.NewReplacer("{a}", marks[0], "{b}", marks[1], "{c}", marks[2]).Replace(w)
			for _, g := range grams(text) {
				for i, mark := range marks {
					if strings.Contains(text, mark) && !strings.Contains(g, mark) {
						t.Errorf("%s: wording %q has the run %q without number %d", f.name, w, g, i+1)
					}
				}
			}
		}
	}
}

func TestGenerationIsAFunctionOfSeedSplitAndPosition(t *testing.T) {
	long, short := mustGenerate(t, 5, 600, Train), mustGenerate(t, 5, 200, Train)
	if !slices.Equal(long[:200], short) {
		t.Error("the first 200 of 600 problems differ from 200 problems")
	}
	if slices.Equal(short, mustGenerate(t, 6, 200, Train)) {
		t.Error("seeds 5 and 6 give the same problems")
	}
}

func TestHeldOutUsesWordingsThatTrainNeverUses(t *testing.T) {
	shape := regexp.MustCompile(`[0-9]+`)
	known := map[string]bool{}
	for _, p := range mustGenerate(t, 1, 3000, Train) {
		known[shape.ReplaceAllString(p.Problem, "#")] = true
	}
	for _, p := range mustGenerate(t, 1, 1000, HeldOut) {
		if known[shape.ReplaceAllString(p.Problem, "#")] {
			t.Fatalf("held-out problem %q has a wording of training", p.Problem)
		}
	}
	for _, p := range mustGenerate(t, 1, 1000, Test) {
		if !known[shape.ReplaceAllString(p.Problem, "#")] {
			t.Fatalf("test problem %q has a wording that training never uses", p.Problem)
		}
	}
}

func TestAskingForMoreThanThereIsSaysHowManyThereAre(t *testing.T) {
	_, err := Generate(1, 1_000_000, Split(9))
	if err == nil || !strings.Contains(err.Error(), "found only 0") {
		t.Errorf("error %v, want one that says how many were found", err)
	}
}
