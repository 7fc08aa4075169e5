package problem

func gcdOfTwo() family {
	return family{
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
	}
}

func lcmOfTwo() family {
	return family{
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
	}
}

func modularPower() family {
	return family{
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
	}
}

func remainder() family {
	return family{
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
	}
}

func divisorCount() family {
	return family{
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
	}
}

func primeCount() family {
	return family{
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
	}
}
