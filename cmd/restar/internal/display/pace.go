package display

import (
	"time"

	"github.com/restar-rl/restar/workflows"
)

// Spans of time that rates are measured over: long enough to smooth rounds that end at once, short enough to follow a
// change of load.
const (
	rateWindow = 30 * time.Second
	etaWindow  = 5 * time.Minute
)

// Pace measures how fast a run goes from the views of it.
type Pace struct {
	seen []moment
	step float64 // seconds of an RL step, as last measured; 0 is unknown
}

type moment struct {
	at     time.Time
	share  float64
	tokens int64
	key    string
}

// Add completes a view with its rates as of now.
func (p *Pace) Add(v View, now time.Time) View {
	m := moment{now, v.Share(), v.Tokens, v.Stage + "/" + kind(v)}
	if n := len(p.seen); n > 0 && (p.seen[n-1].key != m.key || m.share < p.seen[n-1].share || m.tokens < p.seen[n-1].tokens) {
		p.seen = nil // another piece of work, or one that a lost worker does again
	}
	p.seen = append(p.seen, m)
	for len(p.seen) > 2 && now.Sub(p.seen[1].at) >= etaWindow {
		p.seen = p.seen[1:]
	}
	first := p.seen[0]
	if gone, done := now.Sub(first.at).Seconds(), m.share-first.share; gone >= 1 && done > 0 && !v.Paused {
		v.Left = (1 - m.share) * gone / done
		if kind(v) == steps && v.Phase != workflows.PhaseFineTune {
			p.step = gone / done / float64(v.Steps)
		}
	}
	v.RunLeft = p.run(v)
	recent := p.since(now.Add(-rateWindow))
	if gone := now.Sub(recent.at).Seconds(); gone >= 1 {
		v.Rate = float64(m.tokens-recent.tokens) / gone
	}
	return v
}

// run is the time that all RL steps still to come take at the pace of the latest, after the work at hand. What evaluations
// to come add is not in it.
func (p *Pace) run(v View) float64 {
	if p.step == 0 || v.Left == 0 || v.Paused {
		return 0
	}
	left := v.Later
	if kind(v) != steps {
		left += v.Steps - v.Step // a filter comes before its stage's steps
	}
	return v.Left + float64(left)*p.step
}

// since returns the newest moment that is not after t, or the first.
func (p *Pace) since(t time.Time) moment {
	out := p.seen[0]
	for _, m := range p.seen {
		if m.at.After(t) {
			break
		}
		out = m
	}
	return out
}

// steps is the kind of a stage's steps.
const steps = "steps"

// kind is what a share is of: the steps of a stage are one piece of work, an evaluation another.
func kind(v View) string {
	if v.Steps > 0 && v.Phase != workflows.PhaseEvaluate && v.Phase != workflows.PhaseFilter {
		return steps
	}
	return v.Phase
}
