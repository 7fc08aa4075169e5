package workers

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row says which test of which package proves an item of a list.
type row struct{ item, folder, test string }

func readRows(t *testing.T, name string) []row {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			t.Fatalf("%s: line %q, want item, folder and test", name, lines.Text())
		}
		rows = append(rows, row{fields[0], fields[1], fields[2]})
	}
	return rows
}

// testsOf are the tests of a folder.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				out[f.Name.Name] = true
			}
		}
	}
	return out
}

// proven checks that every row names a test that exists, and returns the items.
func proven(t *testing.T, rows []row) map[string]bool {
	t.Helper()
	folders := map[string]map[string]bool{}
	items := map[string]bool{}
	for _, r := range rows {
		if folders[r.folder] == nil {
			folders[r.folder] = testsOf(t, r.folder)
		}
		if !folders[r.folder][r.test] {
			t.Errorf("%s: %s has no test %s", r.item, r.folder, r.test)
		}
		items[r.item] = true
	}
	return items
}

// traps is the number of correctness traps of agentic reinforcement learning that traps.tsv lists, as 4.1 and on:
//
//	1 re-tokenisation drift                 10 KL estimators                   19 weight versions and the prefix cache
//	2 masks of tools and prompts            11 ratio, clip and skipped steps   20 stop strings and tool-call parsing
//	3 logits and labels one apart           12 ends, truncation, overlong      21 tool output is foreign text
//	4 temperature and cuts in log-probs     13 groups and partial failure      22 answer extraction and reward hacking
//	5 engine and trainer mismatch           14 dynamic sampling                23 time-outs of verifier and sandbox
//	6 logits in low precision               15 seeds                           24 evaluation
//	7 advantages of degenerate groups       16 packing                         25 asynchrony
//	8 length bias                           17 padding                         26 the released rStar2-Agent and its paper
//	9 denominators over micro-batches       18 rotary base and config drift
const traps = 26

func TestEveryTrapHasATestNamedAfterIt(t *testing.T) {
	rows := readRows(t, "traps.tsv")
	items := proven(t, rows)
	listed := map[string]bool{}
	for n := range traps {
		if item := fmt.Sprintf("4.%d", n+1); !items[item] {
			t.Errorf("trap %s has no test", item)
		}
	}
	for _, r := range rows {
		var n int
		if _, err := fmt.Sscanf(r.item, "4.%d", &n); err != nil || n < 1 || n > traps || !strings.HasPrefix(r.test, fmt.Sprintf("TestTrap%02d", n)) {
			t.Errorf("trap %s: test %s is not named after it", r.item, r.test)
		}
		listed[r.folder+" "+r.test] = true
	}
	named := regexp.MustCompile(`^TestTrap\d\d`)
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case strings.HasPrefix(d.Name(), ".") && path != "..", d.Name() == "testdata":
			return filepath.SkipDir
		}
		folder, err := filepath.Rel("..", path)
		if err != nil || !slices.Contains([]string{"workers", "activities", "workflows"}, strings.Split(folder, string(filepath.Separator))[0]) {
			return err
		}
		for test := range testsOf(t, folder) {
			if named.MatchString(test) && !listed[filepath.ToSlash(folder)+" "+test] {
				t.Errorf("%s in %s is not in traps.tsv", test, folder)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goldens are the golden values of the paper and the released code that goldens.tsv lists by what they are of.
var goldens = []string{"prompt and tool block", "tool-call parser", "tool response text", "selection and penalties", "advantages and KL",
	"overlong, refill and process supervision", "verifier", "sandbox service", "scheduling", "stages"}

func TestEveryGoldenHasATest(t *testing.T) {
	items := proven(t, readRows(t, "goldens.tsv"))
	if got := slices.Sorted(maps.Keys(items)); !slices.Equal(got, slices.Sorted(slices.Values(goldens))) {
		t.Errorf("goldens.tsv proves %q, want %q", got, goldens)
	}
}
