package problem

// The arithmetic behind generated problems, on small non-negative integers. It is written apart from the Python programs of
// the demonstrations, which the tests run against it.

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func powMod(a, b, m int64) int64 {
	result := int64(1) % m
	for a %= m; b > 0; b >>= 1 {
		if b&1 == 1 {
			result = result * a % m
		}
		a = a * a % m
	}
	return result
}

// falling returns n(n-1)...(n-k+1).
func falling(n, k int64) int64 {
	result := int64(1)
	for i := range k {
		result *= n - i
	}
	return result
}

func choose(n, k int64) int64 { return falling(n, k) / falling(k, k) }

func power(a, b int64) int64 {
	result := int64(1)
	for range b {
		result *= a
	}
	return result
}

// digits returns the decimal digits of n from the left.
func digits(n int64) []int64 {
	if n < 10 {
		return []int64{n}
	}
	return append(digits(n/10), n%10)
}

// inBase reads the decimal digits of n as a numeral in another base.
func inBase(n, base int64) int64 {
	value := int64(0)
	for _, d := range digits(n) {
		value = value*base + d
	}
	return value
}

// total adds f(i) over from <= i < to.
func total(from, to int64, f func(int64) int64) int64 {
	sum := int64(0)
	for i := from; i < to; i++ {
		sum += f(i)
	}
	return sum
}

func same(i int64) int64   { return i }
func square(i int64) int64 { return i * i }

// one is 1 where ok holds.
func one(ok bool) int64 {
	if ok {
		return 1
	}
	return 0
}

func isPrime(n int64) bool {
	for d := int64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n >= 2
}
