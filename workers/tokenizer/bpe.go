package tokenizer

import "math"

// pair is two neighbouring token ids.
type pair struct{ left, right int32 }

// merge is what a pair becomes, and when: lower ranks merge first.
type merge struct {
	rank int32
	id   int32
}

// never is the rank of a pair that does not merge.
const never = math.MaxInt32

// shortPiece is the length in symbols up to which scanning all ranks beats keeping a heap of them.
const shortPiece = 64

// mergeAll applies the merges to ids, lowest rank first and leftmost first within a rank. It may reuse ids.
func mergeAll(ids []int32, merges map[pair]merge) []int32 {
	if len(ids) <= shortPiece {
		return mergeByScan(ids, merges)
	}
	return mergeByHeap(ids, merges)
}

func lookup(merges map[pair]merge, left, right int32) merge {
	if m, ok := merges[pair{left, right}]; ok {
		return m
	}
	return merge{rank: never}
}

// mergeByScan keeps what each symbol and its right neighbour would become, and looks up only what a merge changes.
func mergeByScan(ids []int32, merges map[pair]merge) []int32 {
	var room [shortPiece]merge
	next := room[:0]
	for i := 0; i+1 < len(ids); i++ {
		next = append(next, lookup(merges, ids[i], ids[i+1]))
	}
	for len(next) > 0 {
		at := 0
		for i, m := range next {
			if m.rank < next[at].rank {
				at = i
			}
		}
		if next[at].rank == never {
			break
		}
		ids[at] = next[at].id
		ids = append(ids[:at+1], ids[at+2:]...)
		next = append(next[:at], next[at+1:]...)
		if at < len(next) {
			next[at] = lookup(merges, ids[at], ids[at+1])
		}
		if at > 0 {
			next[at-1] = lookup(merges, ids[at-1], ids[at])
		}
	}
	return ids
}

// candidate is a pair that could merge when it was queued; it is stale once either side has changed.
type candidate struct {
	at          int32
	left, right int32
	merge
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// candidates is a binary heap, the first to merge on top. container/heap would allocate for every push.
type candidates []candidate

func (q *candidates) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for parent := (i - 1) / 2; i > 0 && h[i].before(h[parent]); parent = (i - 1) / 2 {
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	*q = h
}

func (q *candidates) pop() candidate {
	h := *q
	top, n := h[0], len(h)-1
	h[0] = h[n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*q = h[:n]
	return top
}

// gone marks a symbol that has been merged into its left neighbour.
const gone = int32(-1)

// mergeByHeap keeps a linked list of symbols and a heap of mergeable pairs: O(n log n) for any piece.
func mergeByHeap(ids []int32, merges map[pair]merge) []int32 {
	n := int32(len(ids))
	prev, next := make([]int32, n), make([]int32, n)
	for i := range n {
		prev[i], next[i] = i-1, i+1
	}
	var queue candidates
	offer := func(i int32) {
		if i < 0 || next[i] >= n {
			return
		}
		if m := lookup(merges, ids[i], ids[next[i]]); m.rank != never {
			queue.push(candidate{i, ids[i], ids[next[i]], m})
		}
	}
	for i := range n {
		offer(i)
	}
	for len(queue) > 0 {
		c := queue.pop()
		right := next[c.at]
		if ids[c.at] != c.left || right >= n || ids[right] != c.right {
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
