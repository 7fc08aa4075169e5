package tokenizer

import (
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// fragments are what random texts are made of: every class of the pre-tokenizer, markers, and broken UTF-8.
var fragments = []string{
	"a", "Bc", "the ", " dog", "'s", "'LL", "'ſ", "'", "0", "42", "½", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "\u0085", "\u2028",
	".", "!?", "(", "é", "e\u0301", "中文", "😀", "👨‍👩‍👧", "\u0e44\u0e17\u0e22", "Ⅷ", "\U0001e950", "\U00010d41", "\u200b", "\x00", "<|im_end|>", "<|im_start|>user\n", "</tool_response>", "<reason>", "<|im_", "|>",
}

var broken = []string{"\xff", "\xc3", "\xe4\xb8", "\xf0\x9f\x98", "\x80"}

func randomText(rng *rand.Rand, pool []string) string {
	var b strings.Builder
	for range rng.Intn(30) {
		b.WriteString(pool[rng.Intn(len(pool))])
	}
	return b.String()
}

func TestTrap21TextCanNeverWriteAnAddedToken(t *testing.T) {
	tok := trained(t)
	rng := rand.New(rand.NewSource(1))
	first := tok.Added()[0].ID
	texts := Markers()
	for range 2000 {
		texts = append(texts, randomText(rng, append(fragments, broken...)))
	}
	for _, text := range texts {
		for _, id := range tok.Encode(text) {
			if id >= first {
				t.Fatalf("Encode(%q) has the added token %q", text, tok.Decode([]int32{id}))
			}
		}
	}
}

func TestAnAddedTokenInsideTheVocabularyIsOutOfReachOfText(t *testing.T) {
	base := trained(t)
	the := base.Encode(" the")
	if len(the) != 1 {
		t.Fatalf(" the is %d tokens, want 1", len(the))
	}
	for _, ignoreMerges := range []bool{false, true} {
		tokens := append(slices.Clone(base.tokens[:base.added[0].ID]), toAlphabet("<|stop|>"))
		id := int32(len(tokens) - 1)
		tok, err := newTokenizer(vocabulary{tokens: tokens, merges: base.merges, pre: base.pre, ignoreMerges: ignoreMerges,
			added: []AddedToken{{ID: id, Content: "<|stop|>", Special: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(tok.Encode("<|stop|>"), id) {
			t.Errorf("ignore_merges %v: text wrote the added token", ignoreMerges)
		}
		if got := tok.EncodeWithSpecials("<|stop|>"); !slices.Equal(got, []int32{id}) {
			t.Errorf("ignore_merges %v: with added tokens on %v, want [%d]", ignoreMerges, got, id)
		}
	}
}

func TestDecodeUndoesEncode(t *testing.T) {
	tok := trained(t)
	rng := rand.New(rand.NewSource(2))
	texts := []string{
		"", "plain", "中文字符，日本語、한국어", "😀👨‍👩‍👧‍👦🇩🇪", "def f(x):\n\treturn x**2\r\n", "00123456789", "\xff\xfe broken \xe4\xb8", strings.Repeat("a", 5000),
	}
	for range 2000 {
		texts = append(texts, randomText(rng, append(fragments, broken...)))
	}
	for _, text := range texts {
		want := toNFC(validUTF8(text))
		if got := tok.Decode(tok.Encode(text)); got != want {
			t.Fatalf("%q comes back as %q", want, got)
		}
		if got := tok.Decode(tok.EncodeWithSpecials(want)); toNFC(got) != want {
			t.Fatalf("with added tokens %q comes back as %q", want, got)
		}
	}
}

func TestEveryDigitIsATokenOfItsOwn(t *testing.T) {
	if got := len(trained(t).Encode("1234567890")); got != 10 {
		t.Errorf("ten digits are %d tokens", got)
	}
}

func mustSplit(t *testing.T, pattern string) splitter {
	t.Helper()
	split, err := newSplitter(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return split
}

func TestWrittenOutSplittersEqualTheirExpressions(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for _, pattern := range []string{Qwen2Pattern, Llama3Pattern, GPT2Pattern} {
		split := mustSplit(t, pattern)
		re, err := compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			text := randomText(rng, fragments)
			var got, want []string
			split(text, func(p string) { got = append(got, p) })
			eachMatch(re, text, func(p string, _ bool) { want = append(want, p) })
			if !slices.Equal(got, want) {
				t.Fatalf("%q splits into %q, the expression %s gives %q", text, got, pattern, want)
			}
		}
	}
}

func TestScanAndHeapMergeAlike(t *testing.T) {
	tok := trained(t)
	rng := rand.New(rand.NewSource(4))
	for range 3000 {
		ids := make([]int32, rng.Intn(60))
		letters := "aabthe dogi\n"
		for i := range ids {
			ids[i] = tok.own.byteIDs[letters[rng.Intn(len(letters))]]
		}
		scan, heaped := mergeByScan(slices.Clone(ids), tok.own.merges), mergeByHeap(slices.Clone(ids), tok.own.merges)
		if !slices.Equal(scan, heaped) {
			t.Fatalf("%v: scan %v, heap %v", ids, scan, heaped)
		}
	}
}

// slowTrain is the definition of BPE training: count every pair, merge the most frequent one, lower ids first.
func slowTrain(pieces []countedPiece, byteIDs [256]int32, merges int) []pair {
	words := make([][]int32, len(pieces))
	for i, p := range pieces {
		for j := range len(p.text) {
			words[i] = append(words[i], byteIDs[p.text[j]])
		}
	}
	var list []pair
	for next := int32(256); len(list) < merges; next++ {
		counts := map[pair]int{}
		for i, w := range words {
			for _, p := range pairsOf(w) {
				counts[p] += pieces[i].count
			}
		}
		best := pair{}
		for p, n := range counts {
			if b := counts[best]; n > b || n == b && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best = p
			}
		}
		for i, w := range words {
			words[i] = replacePair(w, best, next)
		}
		list = append(list, best)
	}
	return list
}

func TestTrainingMergesTheMostFrequentPairFirst(t *testing.T) {
	_, byteIDs := byteVocabulary()
	want := slowTrain(countPieces(corpus(), Markers(), mustSplit(t, Qwen2Pattern)), byteIDs, 200)
	if got := trained(t).merges[:200]; !slices.Equal(got, want) {
		t.Errorf("merges %v, want %v", got, want)
	}
}

func TestTrainingStopsWhenTheTextsRunOutOfPairs(t *testing.T) {
	tok, err := Train([]string{"aa bb"}, 5000, Markers())
	if err != nil {
		t.Fatal(err)
	}
	if want := 256 + 3 + len(Markers()); tok.VocabSize() != want { // aa, bb and " bb"
		t.Errorf("%d ids, want %d", tok.VocabSize(), want)
	}
	if _, err := Train(nil, 256, Markers()); err == nil {
		t.Error("a vocabulary without room for the bytes and markers was accepted")
	}
}

func TestADecoderNeverWritesHalfACharacter(t *testing.T) {
	tok := trained(t)
	rng := rand.New(rand.NewSource(5))
	for range 2000 {
		text := randomText(rng, append(fragments, broken...))
		ids := tok.Encode(text)
		d := tok.NewDecoder()
		var got strings.Builder
		for _, id := range ids {
			part := d.Write(id)
			if !utf8.ValidString(part) {
				t.Fatalf("%q: the decoder wrote %q", text, part)
			}
			got.WriteString(part)
		}
		got.WriteString(d.Close())
		if want := tok.Decode(ids); got.String() != want {
			t.Fatalf("%q streams as %q, want %q", text, got.String(), want)
		}
	}
}

func TestIDsWithoutATokenAddNothing(t *testing.T) {
	tok := trained(t)
	if got := tok.Decode([]int32{-1, int32(tok.VocabSize()), 1 << 30}); got != "" {
		t.Errorf("ids outside the vocabulary decode to %q", got)
	}
}

func TestManyGoroutinesMayEncodeAtOnce(t *testing.T) {
	tok := trained(t)
	want := tok.Encode("the quick brown fox jumps")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if !slices.Equal(tok.Encode("the quick brown fox jumps"), want) {
					t.Error("ids differ between goroutines")
					return
				}
			}
		})
	}
	wg.Wait()
}
