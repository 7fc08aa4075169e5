package problem

func sequenceTerm() family {
	return family{
		name: "term",
		draw: func(d *dice) []int64 { return []int64{d.between(2, 60), d.between(2, 15), d.between(5, 60)} },
		wordings: []string{
			"Sequence starts {a}, step {b}. Term {c}?", "Start {a}, add {b} each time: term {c}?",
			"Sequence from {a}, step {b}: find term {c}.", "First term {a}, step {b}: find term {c}.", "Sequence starts {a}, step {b}: find term {c}.",
		},
		right: expression{"{a}+{b}*({c}-1)", func(n []int64) int64 { return n[0] + n[1]*(n[2]-1) }},
		wrong: []expression{
			{"{a}+{b}*{c}", func(n []int64) int64 { return n[0] + n[1]*n[2] }},
			{"{a}*{b}+{c}", func(n []int64) int64 { return n[0]*n[1] + n[2] }},
			{"{a}+{b}+{c}", func(n []int64) int64 { return n[0] + n[1] + n[2] }},
		},
	}
}

func rangeSum() family {
	return family{
		name: "rangesum",
		draw: func(d *dice) []int64 {
			from := d.between(2, 60)
			return []int64{from, from + d.between(5, 99)}
		},
		wordings: []string{
			"Sum the integers from {a} to {b}.", "Add all whole numbers from {a} to {b}.",
			"Total of the integers {a} to {b}?", "Add the integers from {a} to {b}.", "Sum all whole numbers from {a} to {b}.",
		},
		right: expression{"sum(range({a},{b}+1))", func(n []int64) int64 { return total(n[0], n[1]+1, same) }},
		wrong: []expression{
			{"sum(range({a},{b}))", func(n []int64) int64 { return total(n[0], n[1], same) }},
			{"{a}+{b}", func(n []int64) int64 { return n[0] + n[1] }},
			{"len(range({a},{b}+1))", func(n []int64) int64 { return n[1] + 1 - n[0] }},
		},
	}
}

func squareSum() family {
	return family{
		name: "squares",
		draw: func(d *dice) []int64 {
			from := d.between(2, 40)
			return []int64{from, from + d.between(3, 30)}
		},
		wordings: []string{
			"Sum of squares from {a} to {b}?", "Add the squares of {a} to {b}.",
			"Total of squares from {a} to {b}?", "Sum the squares of {a} to {b}.", "Add the squares from {a} to {b}.",
		},
		right: expression{"sum(i*i for i in range({a},{b}+1))", func(n []int64) int64 { return total(n[0], n[1]+1, square) }},
		wrong: []expression{
			{"sum(i*i for i in range({a},{b}))", func(n []int64) int64 { return total(n[0], n[1], square) }},
			{"sum(range({a},{b}+1))", func(n []int64) int64 { return total(n[0], n[1]+1, same) }},
			{"sum(i*2 for i in range({a},{b}+1))", func(n []int64) int64 { return 2 * total(n[0], n[1]+1, same) }},
		},
	}
}
