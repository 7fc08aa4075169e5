package collective

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
)

var rng = philox.NewKey(3)

func addresses(t *testing.T, n int) []string {
	t.Helper()
	dir := t.TempDir()
	out := make([]string, n)
	for r := range out {
		out[r] = "unix:" + filepath.Join(dir, fmt.Sprint("rank-", r))
	}
	return out
}

// together runs f on every rank of a new group and returns the errors by rank.
func together(t *testing.T, n int, f func(g Group) error) []error {
	t.Helper()
	at, errs := addresses(t, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			g, err := Join(t.Context(), Options{Rank: r, Addresses: at, Name: t.Name(), Patience: 20 * time.Second})
			if err == nil {
				err = f(g)
				_ = g.Close()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// part is rank r's contribution to element i of shard s: numbers of very different size, whose sum depends on the order.
func part(r, s, i int) float32 {
	u := rng.Uniform(philox.Address{Purpose: philox.Select, Stage: r, Sample: s, Token: i})
	return float32((u - 0.5) * float64(int(1)<<(i%20)))
}

func shards(r, n int) []Shard {
	out := make([]Shard, n)
	for s := range out {
		sizes := []int{0, 7, chunk + 3*s + 1}
		i := 0
		for _, size := range sizes {
			v := make([]float32, size)
			for k := range v {
				v[k] = part(r, s, i)
				i++
			}
			out[s] = append(out[s], v)
		}
	}
	return out
}

func TestSumsFollowTheTreeOverRanks(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		noErrors(t, together(t, n, func(g Group) error {
			mine := shards(g.Rank(), n)
			for range 2 {
				mine = shards(g.Rank(), n)
				if err := g.ReduceScatter(t.Context(), mine); err != nil {
					return err
				}
			}
			for i, got := range slices.Concat(mine[g.Rank()]...) {
				if i%997 != 0 {
					continue
				}
				a := make([]float32, n)
				for r := range a {
					a[r] = part(r, g.Rank(), i)
				}
				for len(a) > 1 { // neighbours first
					for k := range len(a) / 2 {
						a[k] = a[2*k] + a[2*k+1]
					}
					a = a[:len(a)/2]
				}
				if math.Float32bits(got) != math.Float32bits(a[0]) {
					return fmt.Errorf("element %d is %v, want %v", i, got, a[0])
				}
			}
			return nil
		}))
	}
}

func TestEveryRankEndsWithEveryShard(t *testing.T) {
	noErrors(t, together(t, 4, func(g Group) error {
		mine := shards(g.Rank(), 4)
		if err := g.AllGather(t.Context(), mine); err != nil {
			return err
		}
		for r := range mine {
			want := slices.Concat(shards(r, 4)[r]...)
			if !slices.Equal(slices.Concat(mine[r]...), want) {
				return fmt.Errorf("shard %d differs", r)
			}
		}
		if g.Rank() == 3 {
			if err := g.Tell(t.Context(), []byte("news")); err != nil {
				return err
			}
		} else if news, err := g.Listen(t.Context(), 3); err != nil || string(news) != "news" {
			return fmt.Errorf("heard %q, %w", news, err)
		}
		messages, err := g.Exchange(t.Context(), fmt.Appendf(nil, "from %d", g.Rank()))
		for r, m := range messages {
			if string(m) != fmt.Sprint("from ", r) {
				return fmt.Errorf("message of rank %d is %q", r, m)
			}
		}
		return err
	}))
}

func TestRootTellsAndAsksEveryRank(t *testing.T) {
	const root = 2
	noErrors(t, together(t, 4, func(g Group) error {
		same := func(got, want []Shard, what string) error {
			for r := range min(len(got), len(want)) {
				if !slices.Equal(slices.Concat(got[r]...), slices.Concat(want[r]...)) {
					return fmt.Errorf("%s: shard %d differs", what, r)
				}
			}
			return nil
		}
		mine := shards(g.Rank(), 4)
		if err := g.Broadcast(t.Context(), root, mine[1]); err != nil {
			return err
		}
		if err := same(mine[1:2], shards(root, 4)[1:2], "broadcast"); err != nil {
			return err
		}
		mine = shards(g.Rank(), 4)
		if err := g.Scatter(t.Context(), root, mine); err != nil {
			return err
		}
		if err := same(mine[g.Rank():g.Rank()+1], shards(root, 4)[g.Rank():], "scatter"); err != nil {
			return err
		}
		mine = shards(g.Rank(), 4)
		if err := g.Gather(t.Context(), root, mine); err != nil || g.Rank() != root {
			return err
		}
		for r := range mine {
			if err := same(mine[r:r+1], shards(r, 4)[r:], "gather"); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestRanksThatDoNotDoTheSameFindOut(t *testing.T) {
	for name, odd := range map[string]func(g Group) error{
		"another length": func(g Group) error {
			return g.ReduceScatter(t.Context(), []Shard{{make([]float32, 3)}, {make([]float32, 9)}})
		},
		"one step more": func(g Group) error {
			m := g.(*mesh)
			m.serial++
			return g.ReduceScatter(t.Context(), []Shard{{make([]float32, 3)}, {make([]float32, 4)}})
		},
		"a rank that left": func(g Group) error { return g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			errs := together(t, 2, func(g Group) error {
				if g.Rank() == 0 {
					return odd(g)
				}
				return g.ReduceScatter(t.Context(), []Shard{{make([]float32, 3)}, {make([]float32, 4)}})
			})
			if errs[1] == nil || !strings.Contains(errs[1].Error(), "rank 0") {
				t.Errorf("rank 1 saw %v", errs[1])
			}
		})
	}
}

func TestAWaitForAnAbsentRankEndsAndNamesIt(t *testing.T) {
	at := addresses(t, 4)
	_, err := Join(t.Context(), Options{Rank: 0, Addresses: at, Patience: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "[1 2 3]") {
		t.Errorf("waiting above: %v", err)
	}
	_, err = Join(t.Context(), Options{Rank: 3, Addresses: at, Patience: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "rank 0 at unix:") {
		t.Errorf("waiting below: %v", err)
	}
	errs := together(t, 2, func(g Group) error {
		if g.Rank() == 0 {
			_, err := g.Exchange(t.Context(), nil) // the other side never takes part
			return err
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		g.(*mesh).serial = 7
		_, err := g.Exchange(ctx, nil)
		return err
	})
	if errs[0] == nil || errs[1] == nil {
		t.Errorf("ranks at different operations: %v", errs)
	}
}

func TestASilentPeerIsGivenUp(t *testing.T) {
	at := addresses(t, 2)
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		g, err := Join(t.Context(), Options{Rank: 1, Addresses: at, Patience: time.Minute})
		if err != nil {
			t.Error(err)
			return
		}
		<-done // connected, and silent
		_ = g.Close()
	})
	g, err := Join(t.Context(), Options{Rank: 0, Addresses: at, Patience: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	g.(*mesh).opt.Patience = 50 * time.Millisecond
	if _, err := g.Exchange(t.Context(), []byte("hello")); err == nil || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("a silent peer gave %v", err)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	at := addresses(t, 2)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = Join(t.Context(), Options{Rank: 0, Addresses: at, Name: "other run", Patience: 2 * time.Second})
	})
	_, err := Join(t.Context(), Options{Rank: 1, Addresses: at, Name: "this run", Patience: 500 * time.Millisecond})
	if err == nil {
		t.Error("ranks of two runs were joined")
	}
	wg.Wait()
}

func TestImpossibleGroupsAreNamed(t *testing.T) {
	for want, o := range map[string]Options{
		"power of two": {Addresses: []string{"unix:a", "unix:b", "unix:c"}}, "0 to 1": {Rank: 2, Addresses: []string{"unix:a", "unix:b"}},
		"unix:/path": {Addresses: []string{"nowhere", "unix:b"}},
	} {
		if _, err := Join(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if g, err := Join(t.Context(), Options{Addresses: []string{"unix:a"}}); err != nil || g.Size() != 1 {
		t.Errorf("a group of one: %v, %v", g, err)
	}
}
