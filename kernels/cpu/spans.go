package cpu

import "github.com/restar-rl/restar/kernels"

// queryTile is the number of query rows (position, head of the group) that share a pass over the keys: four register tiles, so that
// 48*64 scores and as many of their gradients fit the first-level cache.
const queryTile = 48

// spanItem is one item of attention: query rows [from, to), which are rows of a sequence, or those of several sequences of one row each,
// whose first blocks are shared. Rows count heads of the group apart.
type spanItem struct {
	seq, last int // sequences
	from, to  int // rows, counted from the first of seq
	shared    int // blocks from 0 that several sequences have in common and that all of them see whole
}

// appendTiles cuts the query rows of all sequences into tiles.
func appendTiles(items []spanItem, p kernels.Spans, group int) []spanItem {
	for i := 0; i < p.Sequences(); {
		it := sharing(p, i, group)
		if it.last > i {
			items = append(items, it)
			i = it.last + 1
			continue
		}
		n := (p.Row[i+1] - p.Row[i]) * group
		for f := 0; f < n; f += queryTile {
			items = append(items, spanItem{seq: i, last: i, from: f, to: min(n, f+queryTile)})
		}
		i++
	}
	return items
}

// sharing joins sequence i with those after it that decode from the same prompt, so that a group's keys and values are read once and not once
// a sample.
func sharing(p kernels.Spans, i, group int) spanItem {
	it := spanItem{seq: i, last: i, to: group}
	for k := i + 1; k < p.Sequences() && it.to+group <= queryTile; k++ {
		n := commonBlocks(p, i, k)
		if n == 0 || n < it.shared {
			break
		}
		if it.shared == 0 {
			it.shared = n
		}
		it.last, it.to = k, it.to+group
	}
	return it
}

// commonBlocks counts the first blocks that two sequences of one row each share and see whole.
func commonBlocks(p kernels.Spans, i, k int) int {
	if p.Row[i+1]-p.Row[i] != 1 || p.Row[k+1]-p.Row[k] != 1 {
		return 0
	}
	n := (min(p.Start[i], p.Start[k]) + 1) / block
	for j := range n {
		if p.Table[p.TableAt[i]+j] != p.Table[p.TableAt[k]+j] {
			return j
		}
	}
	return n
}

// check refuses spans that do not fit their rows, tables or caches.
func (s *stream) check(op string, g kernels.Geometry, p kernels.Spans, rows, blocks int) {
	n := p.Sequences()
	if g.KVHeads <= 0 || g.Heads%g.KVHeads != 0 {
		s.fail("%s: %d heads over %d key-value heads", op, g.Heads, g.KVHeads)
		return
	}
	if len(p.Row) != n+1 || len(p.TableAt) != n || p.Row[0] != 0 || p.Row[n] != rows {
		s.fail("%s: spans of %d sequences do not cover %d rows", op, n, rows)
		return
	}
	for i := range n {
		end := p.Start[i] + p.Row[i+1] - p.Row[i]
		need := (end + block - 1) / block
		if p.TableAt[i]+need > len(p.Table) {
			s.fail("%s: sequence %d ends at position %d, its table has %d blocks, want %d", op, i, end, len(p.Table)-p.TableAt[i], need)
			return
		}
		for _, b := range p.Table[p.TableAt[i] : p.TableAt[i]+need] {
			if b < 0 || int(b) >= blocks {
				s.fail("%s: sequence %d names block %d, the cache has %d", op, i, b, blocks)
				return
			}
		}
	}
}
