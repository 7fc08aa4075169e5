package problem

// families are the kinds of generated problems. Wordings are short, and every run of eight words in one holds all of its
// numbers: so problems with different numbers never share such a run, and decontamination by 8-grams leaves them alone.
// Numbers appear in a program in the order of the question, as they are written there.
func families() []family {
	return []family{
		gcdOfTwo(),
		lcmOfTwo(),
		modularPower(),
		remainder(),
		divisorCount(),
		primeCount(),
		digitSum(),
		baseConversion(),
		sequenceTerm(),
		rangeSum(),
		squareSum(),
		combinations(),
		weekdayAfter(),
		leftover(),
	}
}
