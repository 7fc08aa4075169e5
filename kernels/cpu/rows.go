package cpu

// itemElements is the number of elements that one item of row work takes: some microseconds, well above the cost of handing it to a
// thread.
const itemElements = 1 << 14

// rowsOf is the number of rows of n elements that make an item.
func rowsOf(n int) int { return max(1, itemElements/max(1, n)) }
