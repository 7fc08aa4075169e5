package problem

func combinations() family {
	return family{
		name: "choose",
		draw: func(d *dice) []int64 { return []int64{d.between(5, 40), d.between(2, 4)} },
		wordings: []string{
			"From {a} items choose {b}: how many ways?", "How many ways: {a} items, choose {b}?",
			"From {a} people choose {b}: how many ways?", "What is {a} choose {b}?", "How many ways: {a} people, choose {b}?",
		},
		right: expression{"math.comb({a},{b})", func(n []int64) int64 { return choose(n[0], n[1]) }},
		wrong: []expression{
			{"math.perm({a},{b})", func(n []int64) int64 { return falling(n[0], n[1]) }},
			{"{a}*{b}", func(n []int64) int64 { return n[0] * n[1] }},
			{"{a}**{b}", func(n []int64) int64 { return power(n[0], n[1]) }},
		},
	}
}

func weekdayAfter() family {
	return family{
		name: "weekday",
		draw: func(d *dice) []int64 { return []int64{d.between(0, 6), d.between(10, 999)} },
		wordings: []string{
			"Weekday {a}: which weekday after {b} days?", "Weekday {a} plus {b} days gives which weekday?",
			"Now weekday {a}. Which weekday in {b} days?", "Today is weekday {a}. After {b} days?", "Now weekday {a}: which weekday after {b} days?",
		},
		right: expression{"({a}+{b})%7", func(n []int64) int64 { return (n[0] + n[1]) % 7 }},
		wrong: []expression{
			{"{a}+{b}%7", func(n []int64) int64 { return n[0] + n[1]%7 }},
			{"{a}*{b}%7", func(n []int64) int64 { return n[0] * n[1] % 7 }},
			{"({a}+{b})//7", func(n []int64) int64 { return (n[0] + n[1]) / 7 }},
		},
	}
}

func leftover() family {
	return family{
		name: "leftover",
		draw: func(d *dice) []int64 {
			each := d.between(3, 30)
			return []int64{d.between(3, 30), each, d.between(2, each)}
		},
		wordings: []string{
			"{a} bags of {b} apples, {c} eaten: left?", "{a} boxes of {b} pens, {c} lost: left?",
			"{a} packs of {b} cards, {c} sold: left?", "{a} bags of {b} cards, {c} lost: left?", "{a} boxes of {b} apples, {c} sold: left?",
		},
		right: expression{"{a}*{b}-{c}", func(n []int64) int64 { return n[0]*n[1] - n[2] }},
		wrong: []expression{
			{"{a}*({b}-{c})", func(n []int64) int64 { return n[0] * (n[1] - n[2]) }},
			{"{a}+{b}-{c}", func(n []int64) int64 { return n[0] + n[1] - n[2] }},
			{"{a}*{b}+{c}", func(n []int64) int64 { return n[0]*n[1] + n[2] }},
		},
	}
}
