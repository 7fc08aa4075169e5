package problem

func digitSum() family {
	return family{
		name: "digitsum",
		draw: func(d *dice) []int64 { return []int64{d.between(1000, 9999)} },
		wordings: []string{
			"Sum of the digits of {a}?", "Add up the digits of {a}.",
			"What is the digit sum of {a}?", "Find the digit sum of {a}.", "Find the sum of the digits of {a}.",
		},
		right: expression{"sum(map(int,str({a})))", func(n []int64) int64 {
			sum := int64(0)
			for _, digit := range digits(n[0]) {
				sum += digit
			}
			return sum
		}},
		wrong: []expression{
			{"max(map(int,str({a})))", func(n []int64) int64 {
				most := int64(0)
				for _, digit := range digits(n[0]) {
					most = max(most, digit)
				}
				return most
			}},
			{"len(str({a}))", func(n []int64) int64 { return int64(len(digits(n[0]))) }},
			{"{a}%9", func(n []int64) int64 { return n[0] % 9 }},
		},
	}
}

func baseConversion() family {
	return family{
		name: "base",
		draw: func(d *dice) []int64 {
			base := d.between(4, 9)
			numeral := d.between(1, base-1)
			for range d.between(1, 2) {
				numeral = numeral*10 + d.between(0, base-1)
			}
			return []int64{numeral, base}
		},
		wordings: []string{
			"Convert {a} from base {b} to decimal.", "Decimal value of {a} in base {b}?",
			"What is {a} base {b} in decimal?", "{a} in base {b} is what in decimal?", "Find {a} base {b} in decimal.",
		},
		right: expression{"int('{a}',{b})", func(n []int64) int64 { return inBase(n[0], n[1]) }},
		wrong: []expression{
			{"int('{a}',{b}+1)", func(n []int64) int64 { return inBase(n[0], n[1]+1) }},
			{"{a}*{b}", func(n []int64) int64 { return n[0] * n[1] }},
			{"{a}//{b}", func(n []int64) int64 { return n[0] / n[1] }},
		},
	}
}
