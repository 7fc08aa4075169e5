package rl

import "fmt"

// RefillNext says what dynamic sampling does after a round (DAPO §3.2): sample again while fewer than want mixed groups are
// held and rounds are left (maxRounds 0 = no bound), else go on with what there is. Running out of rounds gives a smaller
// batch, never a failed run.
func RefillNext(mixed, want, rounds, maxRounds int) (again bool) {
	return mixed < want && (maxRounds == 0 || rounds < maxRounds)
}

// Outcome is what one prompt group of dynamic sampling turned out to be.
type Outcome struct {
	Ordinal int // position of the prompt in the stage's order
	Class   GroupClass
}

// Filled is the state of dynamic sampling over the groups sampled so far for one optimizer batch.
type Filled struct {
	Take       []int // ordinals that train: the first want mixed groups by ordinal
	Surplus    []int // mixed groups beyond those, ascending; they do not train, since the next batch is of another policy
	AllCorrect int
	AllWrong   int
}

// Fill decides which groups make the batch. It reads groups by ordinal, never by the order in which they finished: short and easy
// groups finish first, and taking the first to finish would train on them alone.
func Fill(groups []Outcome, want int) (Filled, error) {
	byOrdinal := map[int]GroupClass{}
	first := 0
	for i, g := range groups {
		if _, twice := byOrdinal[g.Ordinal]; twice {
			return Filled{}, fmt.Errorf("prompt ordinal %d is counted twice in one batch", g.Ordinal)
		}
		byOrdinal[g.Ordinal] = g.Class
		if i == 0 || g.Ordinal < first {
			first = g.Ordinal
		}
	}
	var f Filled
	for o := first; o < first+len(groups); o++ {
		class, ok := byOrdinal[o]
		switch {
		case !ok:
			return Filled{}, fmt.Errorf("prompt ordinal %d is missing between %d and %d; refills continue the order without gaps", o, first, first+len(groups)-1)
		case class == GroupAllNonzero:
			f.AllCorrect++
		case class == GroupAllZero:
			f.AllWrong++
		case class != GroupMixed:
		case len(f.Take) < want:
			f.Take = append(f.Take, o)
		default:
			f.Surplus = append(f.Surplus, o)
		}
	}
	return f, nil
}
