package curate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/problem"
)

// Removal is a row that was not kept.
type Removal struct {
	ID     string `json:"id"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail"`
}

// Count is how many rows were removed for a reason.
type Count struct {
	Reason Reason `json:"reason"`
	Rows   int    `json:"rows"`
}

// Report is what became of a set of problems. Rows = Kept + len(Removed).
type Report struct {
	Rows    int       `json:"rows"`
	Kept    int       `json:"kept"`
	Digest  string    `json:"digest"` // of the kept problems
	Counts  []Count   `json:"counts"` // by reason, in the order of their names
	Removed []Removal `json:"removed"`
}

// Further is the report after another pass has removed more rows and left kept.
func (r Report) Further(removed []Removal, kept []problem.Problem) Report {
	r.Removed = append(slices.Clip(r.Removed), removed...)
	r.Kept, r.Digest, r.Counts = len(kept), Digest(kept), countReasons(r.Removed)
	return r
}

func countReasons(removed []Removal) []Count {
	rows := map[Reason]int{}
	for _, r := range removed {
		rows[r.Reason]++
	}
	counts := make([]Count, 0, len(rows))
	for reason, n := range rows {
		counts = append(counts, Count{reason, n})
	}
	slices.SortFunc(counts, func(a, b Count) int { return strings.Compare(string(a.Reason), string(b.Reason)) })
	return counts
}

// Digest names a set of problems by its content: the SHA-256 of one JSON array [id, problem, answer] a line, in hex.
func Digest(problems []problem.Problem) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, p := range problems {
		if err := enc.Encode([3]string{p.ID, p.Problem, p.Answer}); err != nil {
			panic("curate: strings always encode as JSON: " + err.Error())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shownLength keeps details readable.
const shownLength = 80

func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= shownLength {
		return s
	}
	return string(runes[:shownLength]) + "…"
}
