package tokenizer

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// Train learns a byte-level BPE vocabulary of at most vocab ids from texts: the 256 bytes, then the merges, then the added
// tokens in the order given. It has fewer ids when the texts run out of pairs to merge. At equal counts the pair with the lower
// ids merges first, so the result is a function of the texts alone. Contents such as <|im_end|> become special tokens, the
// others plain added ones; where they occur in the texts they are not learned from.
func Train(texts []string, vocab int, added []string) (*Tokenizer, error) {
	tokens, byteIDs := byteVocabulary()
	if vocab < len(tokens)+len(added) {
		return nil, fmt.Errorf("vocabulary of %d ids, want at least %d: 256 bytes and %d added tokens", vocab, len(tokens)+len(added), len(added))
	}
	split, err := newSplitter(Qwen2Pattern)
	if err != nil {
		return nil, err
	}
	tr := newTrainer(countPieces(texts, added, split), byteIDs)
	raw := make([]string, len(tokens))
	for b, id := range byteIDs {
		raw[id] = string([]byte{byte(b)})
	}
	known := map[string]int32{}
	for id, text := range raw {
		known[text] = int32(id)
	}
	var merges []pair
	for len(tokens)+len(added) < vocab {
		best, ok := tr.best()
		if !ok {
			break // every piece of the texts is one token
		}
		joined := raw[best.left] + raw[best.right]
		id, twice := known[joined] // two ways to the same bytes share one id
		if !twice {
			id = int32(len(tokens))
			known[joined] = id
			raw, tokens = append(raw, joined), append(tokens, toAlphabet(joined))
		}
		tr.apply(best, id)
		merges = append(merges, best)
	}
	return newTokenizer(vocabulary{
		tokens: tokens, merges: merges, added: numberAdded(added, len(tokens)),
		normalizers: []func(string) string{toNFC}, pre: preTokenizer{stages: []splitter{split}},
	})
}

// byteVocabulary orders the bytes as the file alphabet does, which is the order every byte-level vocabulary begins with.
func byteVocabulary() (tokens []string, byteIDs [256]int32) {
	order := slices.Clone(alphabet[:])
	slices.Sort(order)
	for id, r := range order {
		tokens = append(tokens, string(r))
		byteIDs[byteOf[r]] = int32(id)
	}
	return tokens, byteIDs
}

func numberAdded(contents []string, first int) []AddedToken {
	added := make([]AddedToken, len(contents))
	for i, c := range contents {
		added[i] = AddedToken{ID: int32(first + i), Content: c, Special: strings.HasPrefix(c, "<|")}
	}
	return added
}

// countedPiece is a distinct pre-token and how often it occurs.
type countedPiece struct {
	text  string
	count int
}

// countPieces returns the distinct pieces of the texts in byte order.
func countPieces(texts, added []string, split splitter) []countedPiece {
	counts := map[string]int{}
	cut := cutter(added)
	for _, text := range texts {
		for _, run := range cut(text) {
			split(toNFC(validUTF8(run)), func(piece string) { counts[piece]++ })
		}
	}
	pieces := make([]countedPiece, 0, len(counts))
	for text, count := range counts {
		pieces = append(pieces, countedPiece{text, count})
	}
	slices.SortFunc(pieces, func(a, b countedPiece) int { return strings.Compare(a.text, b.text) })
	return pieces
}

// cutter returns a function that cuts a text at every added token.
func cutter(added []string) func(string) []string {
	const mark = "\x00" // NUL is a piece by itself that no merge profits from
	pairs := make([]string, 0, 2*len(added))
	for _, a := range added {
		pairs = append(pairs, a, mark)
	}
	replacer := strings.NewReplacer(pairs...)
	return func(text string) []string { return strings.Split(replacer.Replace(text), mark) }
}

// trainer keeps the pieces as ids, the count of every pair, and where each pair occurs.
type trainer struct {
	pieces [][]int32
	times  []int
	counts map[pair]int
	where  map[pair]map[int]struct{} // pair -> pieces that hold or once held it
	queue  countQueue
}

func newTrainer(pieces []countedPiece, byteIDs [256]int32) *trainer {
	tr := &trainer{counts: map[pair]int{}, where: map[pair]map[int]struct{}{}}
	for i, p := range pieces {
		ids := make([]int32, len(p.text))
		for j := range len(p.text) {
			ids[j] = byteIDs[p.text[j]]
		}
		tr.pieces = append(tr.pieces, ids)
		tr.times = append(tr.times, p.count)
		for _, q := range pairsOf(ids) {
			tr.add(q, i, p.count)
		}
	}
	for p, n := range tr.counts {
		tr.queue = append(tr.queue, pairCount{p, n})
	}
	heap.Init(&tr.queue)
	return tr
}

func pairsOf(ids []int32) []pair {
	var pairs []pair
	for j := range len(ids) - 1 {
		pairs = append(pairs, pair{ids[j], ids[j+1]})
	}
	return pairs
}

func (tr *trainer) add(p pair, piece, n int) {
	tr.counts[p] += n
	if tr.where[p] == nil {
		tr.where[p] = map[int]struct{}{}
	}
	tr.where[p][piece] = struct{}{}
}

// best returns the most frequent pair, or false when none is left. Queue entries whose count is out of date are renewed.
func (tr *trainer) best() (pair, bool) {
	for tr.queue.Len() > 0 {
		top := heap.Pop(&tr.queue).(pairCount)
		now := tr.counts[top.pair]
		if now == top.count && now > 0 {
			return top.pair, true
		}
		if now > 0 {
			heap.Push(&tr.queue, pairCount{top.pair, now})
		}
	}
	return pair{}, false
}

// apply merges p into id in every piece and brings the counts up to date.
func (tr *trainer) apply(p pair, id int32) {
	changed := map[pair]struct{}{}
	for i := range tr.where[p] {
		ids, n := tr.pieces[i], tr.times[i]
		for _, q := range pairsOf(ids) {
			tr.counts[q] -= n
		}
		ids = replacePair(ids, p, id)
		tr.pieces[i] = ids
		for _, q := range pairsOf(ids) {
			tr.add(q, i, n)
			if q.left == id || q.right == id {
				changed[q] = struct{}{}
			}
		}
	}
	delete(tr.counts, p)
	delete(tr.where, p)
	for q := range changed {
		heap.Push(&tr.queue, pairCount{q, tr.counts[q]})
	}
}

func replacePair(ids []int32, p pair, id int32) []int32 {
	out := ids[:0]
	for j := 0; j < len(ids); j++ {
		if j+1 < len(ids) && ids[j] == p.left && ids[j+1] == p.right {
			out = append(out, id)
			j++
			continue
		}
		out = append(out, ids[j])
	}
	return out
}

// pairCount is a queue entry; countQueue pops the highest count first, then the lower ids.
type pairCount struct {
	pair  pair
	count int
}

type countQueue []pairCount

func (q countQueue) Len() int { return len(q) }
func (q countQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.count != b.count:
		return a.count > b.count
	case a.pair.left != b.pair.left:
		return a.pair.left < b.pair.left
	}
	return a.pair.right < b.pair.right
}
func (q countQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *countQueue) Push(x any)   { *q = append(*q, x.(pairCount)) }
func (q *countQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
