package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/workers/model"
)

// compileWait bounds small commands: compiling a peer, writing its weights.
const compileWait = 2 * time.Minute

// command runs a helper of a peer.
func (r *runner) command(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(r, compileWait)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// compiled starts a peer that is a C program, built first if its source is newer.
func (r *runner) compiled(name, source string, flags ...string) *match.Process {
	from, to := filepath.Join(r.Scripts, source), filepath.Join(r.Peers, strings.TrimSuffix(source, ".c"))
	if stale(to, from) {
		err := errors.Join(os.MkdirAll(r.Peers, 0o755), r.command("gcc", append([]string{"-O3", "-o", to, from}, flags...)...))
		if err != nil {
			r.note(name, err)
			return nil
		}
	}
	return r.peer(match.Spec{Name: name, Command: []string{to}})
}

// stale reports whether a built file is missing or older than its source.
func stale(built, source string) bool {
	b, err := os.Stat(built)
	if err != nil {
		return true
	}
	s, err := os.Stat(source)
	return err == nil && s.ModTime().After(b.ModTime())
}

// machine notes what the benchmark runs on, and whether others use it at the same time.
func (r *runner) machine() {
	r.notes = append(r.notes, fmt.Sprintf("%s, %d processors; %s, %s", cpuid.CPU.BrandName, runtime.NumCPU(),
		model.NumericsOf(model.PrecisionFP32), model.NumericsOf(model.PrecisionBF16)))
	load := 0.0
	if body, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(body), &load)
	}
	r.figures.Set("load_average_at_start", load)
	if load > busy {
		r.notes = append(r.notes, fmt.Sprintf("other programs use this machine (load average %.1f): all figures are too low, and ratios may be off", load))
	}
}

// busy is a load average that others must cause: the benchmark itself has only begun.
const busy = 0.7

// limits measures what the machine can do at most, with a program of its own: multiply-adds on registers and streaming reads. Each
// kind is asked twice, and the machine's limit is the most that was seen.
func (r *runner) limits() error {
	p := r.compiled(limits, "limits.c", "-pthread")
	defer stop(p)
	if p == nil {
		return nil
	}
	for range 2 {
		for _, kind := range []string{fp32, bf16, "read"} {
			for _, n := range []int{1, 2} {
				a, err := p.Ask(r, fmt.Sprintf("%s %d", kind, n), time.Minute)
				if err != nil {
					return err
				}
				name := limitName(kind, n)
				r.figures.Set(name, max(a.Rate, r.figures[name]))
			}
		}
	}
	return nil
}

func limitName(kind string, threads int) string {
	if kind == "read" {
		return fmt.Sprintf("read_gb_per_s_%d_threads", threads)
	}
	return fmt.Sprintf("peak_gflops_%s_%d_threads", kind, threads)
}

// bigProducts measures one product of 512x2048x2048 from float32 operands, packing and rounding included, against the peak.
func (r *runner) bigProducts() error {
	ours, err := r.restar("products", Shape{})
	if err != nil {
		return err
	}
	defer ours.Stop()
	theirs := r.compiled(oneDNN, "onednn.c", "-fopenmp", "-ldnnl")
	defer stop(theirs)
	size := product{m: 512, n: 2048, k: 2048}
	for _, precision := range []string{fp32, bf16} {
		var fractions []string
		for _, n := range []int{1, 2} {
			mine := entries(ours, size.request("PACK", precision, n))
			all := slices.Concat(mine, entries(theirs, size.request("NT", precision, n)))
			if err := match.Play(r, all, match.Rules{Rounds: 4, Budget: time.Minute, Wait: time.Minute}); err != nil {
				return err
			}
			if err := failed(mine...); err != nil {
				return err
			}
			suffix := fmt.Sprintf("_%s_%d_threads", precision, n)
			r.figures.Set("gemm_gflops"+suffix, size.flops()/mine[0].Best.Seconds/1e9)
			r.figures.Ratio("gemm_peak_fraction"+suffix, "gemm_gflops"+suffix, "peak_gflops"+suffix)
			fractions = append(fractions, "gemm_peak_fraction"+suffix)
			if e := match.Fastest(all[1:]...); e != nil {
				r.figures.Set("onednn_gflops"+suffix, size.flops()/e.Best.Seconds/1e9)
			}
		}
		r.figures.Least("gemm_peak_fraction_"+precision, fractions...)
	}
	return nil
}

// request is how contestants are asked for a product.
func (p product) request(kind, precision string, threads int) string {
	return fmt.Sprintf("%s %s %d %d %d %d", kind, precision, p.m, p.n, p.k, threads)
}
