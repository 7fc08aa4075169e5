package engine

import (
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// bounds sums, for every model and precision, the best times of what a training step cannot do without: for each of its matrix
// products the faster of oneDNN and restar's own, and restar's own kernels for the rest. A step at 100% of its bound would add nothing to that: no
// packing, no rounding, no copy, no logits computed twice, no sum of partial gradients, no cache lost between two operations.
func (r *runner) bounds() error {
	for _, s := range r.chosen() {
		r.begin("bound of", s)
		if err := r.bound(s); err != nil {
			return err
		}
	}
	for figure, precision := range map[string]string{"train_bound_fraction": bf16, "train_bound_fraction_fp32": fp32} {
		var fractions []string
		for _, s := range r.chosen() {
			fractions = append(fractions, "train_bound_fraction_"+s.Name+"_"+precision)
		}
		r.figures.Least(figure, fractions...)
	}
	return nil
}

func (r *runner) bound(s Shape) error {
	rest, err := r.parts(s)
	if err != nil {
		return err
	}
	times, err := r.productTimes(s)
	if err != nil {
		return err
	}
	for _, precision := range []string{fp32, bf16} {
		name, products := s.Name+"_"+precision, 0.0
		for _, p := range s.products() {
			products += float64(p.times) * times[p.request(p.kind, p.precision(precision), 2)]
		}
		total := products
		r.figures.Set("bound_seconds_"+name+"_products", products)
		for kind, seconds := range rest {
			r.figures.Set("bound_seconds_"+name+"_"+kind, seconds)
			total += seconds
		}
		r.figures.Set("bound_tokens_per_s_"+name, float64(s.rows())/total)
		r.figures.Ratio("train_bound_fraction_"+name, "train_tokens_per_s_"+name, "bound_tokens_per_s_"+name)
	}
	return nil
}

// parts are the seconds of what a step does besides matrix products.
func (r *runner) parts(s Shape) (map[string]float64, error) {
	ours, err := r.restar("parts", s)
	if err != nil {
		return nil, err
	}
	defer ours.Stop()
	least := map[string]float64{}
	for range 2 {
		a, err := ours.Ask(r, "2", 2*time.Minute)
		if err != nil {
			return nil, err
		}
		for kind, seconds := range a.Parts {
			if old, ok := least[kind]; !ok || seconds < old {
				least[kind] = seconds
			}
		}
	}
	return least, nil
}

// productTimes are the best times of a model's products, under their requests.
func (r *runner) productTimes(s Shape) (map[string]float64, error) {
	ours, err := r.restar("products", Shape{})
	if err != nil {
		return nil, err
	}
	defer ours.Stop()
	theirs := r.compiled(oneDNN, "onednn.c", "-fopenmp", "-ldnnl")
	defer stop(theirs)
	times := map[string]float64{}
	for _, p := range s.products() {
		for _, precision := range []string{fp32, bf16} {
			request := p.request(p.kind, p.precision(precision), 2)
			if times[request] > 0 {
				continue
			}
			mine, others := entries(ours, request), entries(theirs, request)
			all := append(append([]*match.Entry{}, mine...), others...)
			if err := match.Play(r, all, match.Rules{Rounds: 2, Budget: time.Minute, Wait: time.Minute}); err != nil {
				return nil, err
			}
			if err := failed(mine...); err != nil {
				return nil, err
			}
			if err := match.Failure(others...); err != nil {
				r.note(oneDNN, err)
			}
			times[request] = match.Fastest(all...).Best.Seconds
			r.compare(request, p, mine[0], match.Fastest(others...))
		}
	}
	return times, nil
}
