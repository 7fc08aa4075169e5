package tokenizer

import "container/heap"

// pair is two neighbouring token ids.
type pair struct{ left, right int32 }

// merge is what a pair becomes, and when: lower ranks merge first.
type merge struct {
	rank int
	id   int32
}

// shortPiece is the length in symbols up to which scanning all pairs beats keeping a heap of them.
const shortPiece = 48

// mergeAll applies the merges to ids, lowest rank first and leftmost first within a rank. It may reuse ids.
func mergeAll(ids []int32, merges map[pair]merge) []int32 {
	if len(ids) <= shortPiece {
		return mergeByScan(ids, merges)
	}
	return mergeByHeap(ids, merges)
}

func mergeByScan(ids []int32, merges map[pair]merge) []int32 {
	for len(ids) > 1 {
		best, at := merge{rank: -1}, -1
		for i := range len(ids) - 1 {
			m, ok := merges[pair{ids[i], ids[i+1]}]
			if ok && (at < 0 || m.rank < best.rank) {
				best, at = m, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = best.id
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return ids
}

// candidate is a pair that could merge when it was queued; it is stale once either side has changed.
type candidate struct {
	at   int
	pair pair
	merge
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// gone marks a symbol that has been merged into its left neighbour.
const gone = int32(-1)

// mergeByHeap keeps a linked list of symbols and a heap of mergeable pairs: O(n log n) for any piece.
func mergeByHeap(ids []int32, merges map[pair]merge) []int32 {
	n := len(ids)
	prev, next := make([]int, n), make([]int, n)
	for i := range n {
		prev[i], next[i] = i-1, i+1
	}
	var queue candidates
	offer := func(i int) {
		if i < 0 || next[i] >= n {
			return
		}
		p := pair{ids[i], ids[next[i]]}
		if m, ok := merges[p]; ok {
			heap.Push(&queue, candidate{i, p, m})
		}
	}
	for i := range n {
		offer(i)
	}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
		right := next[c.at]
		if ids[c.at] != c.pair.left || right >= n || ids[right] != c.pair.right {
			continue
		}
		ids[c.at], ids[right] = c.id, gone
		next[c.at] = next[right]
		if next[right] < n {
			prev[next[right]] = c.at
		}
		offer(prev[c.at])
		offer(c.at)
	}
	return compact(ids)
}

func compact(ids []int32) []int32 {
	kept := ids[:0]
	for _, id := range ids {
		if id != gone {
			kept = append(kept, id)
		}
	}
	return kept
}
