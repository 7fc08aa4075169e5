package problem

// families are the kinds of generated problems. Wordings are short, and every run of eight words in one holds all of its
// numbers: so problems with different numbers never share such a run, and decontamination by 8-grams leaves them alone.
// Numbers appear in a program in the order of the question, as they are written there.
func families() []family {
	all := numberTheory()
	all = append(all, digitFamilies()...)
	all = append(all, sequences()...)
	return append(all, stories()...)
}

func numberTheory() []family {
	return []family{
		{
			name: "gcd",
			draw: func(d *dice) []int64 {
				g := d.between(2, 12)
				return []int64{g * d.between(6, 40), g * d.between(2, 12)}
			},
			wordings: []string{
				"What is the gcd of {a} and {b}?", "Greatest common divisor of {a} and {b}?",
				"Find the gcd of {a} and {b}.", "Greatest common factor of {a} and {b}?", "Find the greatest common divisor of {a}, {b}.",
			},
			right: expression{"math.gcd({a},{b})", func(n []int64) int64 { return gcd(n[0], n[1]) }},
			wrong: []expression{
				{"math.lcm({a},{b})", func(n []int64) int64 { return n[0] / gcd(n[0], n[1]) * n[1] }},
				{"{a}//{b}", func(n []int64) int64 { return n[0] / n[1] }},
				{"{a}-{b}", func(n []int64) int64 { return n[0] - n[1] }},
			},
		},
		{
			name: "lcm",
			draw: func(d *dice) []int64 { return []int64{d.between(4, 90), d.between(4, 90)} },
			wordings: []string{
				"What is the lcm of {a} and {b}?", "Least common multiple of {a} and {b}?",
				"Find the lcm of {a} and {b}.", "Smallest common multiple of {a} and {b}?", "Find the least common multiple of {a}, {b}.",
			},
			right: expression{"math.lcm({a},{b})", func(n []int64) int64 { return n[0] / gcd(n[0], n[1]) * n[1] }},
			wrong: []expression{
				{"math.gcd({a},{b})", func(n []int64) int64 { return gcd(n[0], n[1]) }},
				{"{a}*{b}", func(n []int64) int64 { return n[0] * n[1] }},
				{"{a}+{b}", func(n []int64) int64 { return n[0] + n[1] }},
			},
		},
		{
			name: "powmod",
			draw: func(d *dice) []int64 { return []int64{d.between(2, 30), d.between(3, 30), d.between(5, 97)} },
			wordings: []string{
				"Compute {a}^{b} mod {c}.", "What is {a}^{b} modulo {c}?",
				"{a} to the power {b}, modulo {c}?", "Find {a}^{b} modulo {c}.", "What is {a}^{b} mod {c}?",
			},
			right: expression{"pow({a},{b},{c})", func(n []int64) int64 { return powMod(n[0], n[1], n[2]) }},
			wrong: []expression{
				{"{a}*{b}%{c}", func(n []int64) int64 { return n[0] * n[1] % n[2] }},
				{"({a}+{b})%{c}", func(n []int64) int64 { return (n[0] + n[1]) % n[2] }},
				{"pow({b},{a},{c})", func(n []int64) int64 { return powMod(n[1], n[0], n[2]) }},
			},
		},
		{
			name: "remainder",
			draw: func(d *dice) []int64 { return []int64{d.between(100, 9999), d.between(3, 99)} },
			wordings: []string{
				"Remainder of {a} divided by {b}?", "Divide {a} by {b}: what remainder?",
				"What remainder does {a} leave by {b}?", "Find the remainder of {a} by {b}.", "What is the remainder of {a} by {b}?",
			},
			right: expression{"{a}%{b}", func(n []int64) int64 { return n[0] % n[1] }},
			wrong: []expression{
				{"{a}//{b}", func(n []int64) int64 { return n[0] / n[1] }},
				{"{a}-{b}", func(n []int64) int64 { return n[0] - n[1] }},
				{"{a}*{b}", func(n []int64) int64 { return n[0] * n[1] }},
			},
		},
		{
			name: "divisors",
			draw: func(d *dice) []int64 { return []int64{d.between(12, 999)} },
			wordings: []string{
				"How many divisors does {a} have?", "Number of divisors of {a}?",
				"Count the divisors of {a}.", "How many numbers divide {a}?", "Find the number of divisors of {a}.",
			},
			right: expression{"sum({a}%i==0 for i in range(1,{a}+1))", func(n []int64) int64 {
				return total(1, n[0]+1, func(i int64) int64 { return one(n[0]%i == 0) })
			}},
			wrong: []expression{
				{"sum({a}%i==0 for i in range(1,{a}))", func(n []int64) int64 {
					return total(1, n[0], func(i int64) int64 { return one(n[0]%i == 0) })
				}},
				{"sum({a}%i for i in range(1,{a}+1))", func(n []int64) int64 {
					return total(1, n[0]+1, func(i int64) int64 { return n[0] % i })
				}},
				{"sum({a}%i>0 for i in range(1,{a}+1))", func(n []int64) int64 {
					return total(1, n[0]+1, func(i int64) int64 { return one(n[0]%i > 0) })
				}},
			},
		},
		{
			name: "primes",
			draw: func(d *dice) []int64 { return []int64{d.between(12, 999)} },
			wordings: []string{
				"How many primes are below {a}?", "Number of primes less than {a}?",
				"Count the primes below {a}.", "How many primes are less than {a}?", "Count the primes less than {a}.",
			},
			right: expression{"sum(all(i%d for d in range(2,i)) for i in range(2,{a}))", func(n []int64) int64 {
				return total(2, n[0], func(i int64) int64 { return one(isPrime(i)) })
			}},
			wrong: []expression{
				{"sum(any(i%d for d in range(2,i)) for i in range(2,{a}))", func(n []int64) int64 {
					return total(2, n[0], func(i int64) int64 { return one(i > 2) })
				}},
				{"sum(all(i%d for d in range(2,i)) for i in range({a}))", func(n []int64) int64 {
					return 2 + total(2, n[0], func(i int64) int64 { return one(isPrime(i)) })
				}},
				{"sum(i%2 for i in range(2,{a}))", func(n []int64) int64 {
					return total(2, n[0], func(i int64) int64 { return i % 2 })
				}},
			},
		},
	}
}

func digitFamilies() []family {
	return []family{
		{
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
		},
		{
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
		},
	}
}

func sequences() []family {
	return []family{
		{
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
		},
		{
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
		},
		{
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
		},
	}
}

func stories() []family {
	return []family{
		{
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
		},
		{
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
		},
		{
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
		},
	}
}
