package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// bar is the least that a figure shall be.
type bar struct {
	figure string
	least  float64
	says   string
}

// bars are those of the project.
var bars = []bar{
	{"train_bound_fraction", 0.60, "training step in bf16, share of its bound, worst model"},
	{"train_bound_fraction_fp32", 0.50, "training step in fp32, share of its bound, worst model"},
	{"train_vs_torch_1m", 6, "training step in bf16 against Debian's PyTorch, 1m"},
	{"train_vs_torch_10m", 2.5, "the same, 10m"},
	{"train_vs_torch_135m", 6, "the same, 135m"},
	{"gemm_peak_fraction_fp32", 0.85, "512x2048x2048 with packing, share of the peak, worse of 1 and 2 threads"},
	{"gemm_peak_fraction_bf16", 0.80, "the same in bf16"},
	{"decode1_bandwidth_fraction", 0.80, "one sequence, share of the memory's bandwidth, 135m"},
	{"decode1_vs_llamacpp", 1, "one sequence against llama.cpp, both bf16, 135m"},
	{"decode64_vs_torch", 5, "64 sequences against Debian's PyTorch, 135m"},
	{"train_memory_vs_torch", 1, "PyTorch's peak memory of a 135m step as a multiple of ours"},
}

// missed lists what was measured and is below its bar.
func (r *runner) missed() []string {
	var names []string
	for _, b := range bars {
		if v, ok := r.figures[b.figure]; ok && v < b.least {
			names = append(names, fmt.Sprintf("%s is %.3g, the bar is %.3g", b.figure, v, b.least))
		}
	}
	return names
}

// report prints everything for people, or the figures for machines.
func (r *runner) report(out io.Writer) error {
	if r.JSON {
		return json.NewEncoder(out).Encode(r.figures)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, t := range []struct {
		of    []string // sections
		print func(*tabwriter.Writer)
	}{
		{[]string{"limits", "products"}, r.limitTable}, {[]string{"train"}, r.trainTable}, {[]string{"bound"}, r.boundTable},
		{[]string{"bound"}, r.lostTable}, {[]string{"decode", "generate"}, r.sampleTable},
	} {
		if slices.ContainsFunc(t.of, r.runs) {
			t.print(w)
		}
	}
	r.barTable(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range r.notes {
		fmt.Fprintln(out, "note:", n)
	}
	fmt.Fprintf(out, "figures: %s\n", r.Figures)
	return nil
}

// row prints cells.
func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }

func title(w *tabwriter.Writer, text string) {
	w.Flush()
	fmt.Fprintf(w, "\n%s\n", text)
}

// cell formats a figure; one that was not measured is a dash.
func (r *runner) cell(format, name string) string {
	v, ok := r.figures[name]
	if !ok {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func (r *runner) percent(name string) string {
	if v, ok := r.figures[name]; ok {
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	return "-"
}

func (r *runner) limitTable(w *tabwriter.Writer) {
	title(w, "The machine's limits, and products of 512x2048x2048 from float32 operands (ours with packing and rounding, oneDNN's without)")
	row(w, "", "1 thread", "2 threads")
	row(w, "read, GB/s", r.cell("%.1f", limitName("read", 1)), r.cell("%.1f", limitName("read", 2)))
	for _, p := range []string{fp32, bf16} {
		for _, line := range []struct{ says, figure string }{{" peak, GFLOP/s", "peak_gflops_"}, {" restar", "gemm_gflops_"}, {" oneDNN", "onednn_gflops_"}} {
			row(w, p+line.says, r.cell("%.0f", line.figure+p+"_1_threads"), r.cell("%.0f", line.figure+p+"_2_threads"))
		}
		row(w, p+" restar, of peak", r.percent("gemm_peak_fraction_"+p+"_1_threads"), r.percent("gemm_peak_fraction_"+p+"_2_threads"))
	}
}

func (r *runner) trainTable(w *tabwriter.Writer) {
	title(w, fmt.Sprintf("Training: tokens a second of whole steps (PyTorch %s and %s, each on its best number of threads)", r.version(torchDebian), r.version(torchNew)))
	row(w, "", "restar bf16", "restar fp32", "PyTorch Debian", "newest fp32", "newest bf16", "bf16/Debian", "fp32/Debian")
	for _, s := range r.chosen() {
		row(w, s.Name, r.cell("%.0f", "train_tokens_per_s_"+s.Name+"_bf16"), r.cell("%.0f", "train_tokens_per_s_"+s.Name+"_fp32"),
			r.cell("%.0f", "torch_train_tokens_per_s_"+s.Name), r.cell("%.0f", "torch_newest_train_tokens_per_s_"+s.Name+"_fp32"),
			r.cell("%.0f", "torch_newest_train_tokens_per_s_"+s.Name+"_bf16"), r.cell("%.2fx", "train_vs_torch_"+s.Name), r.cell("%.2fx", "train_fp32_vs_torch_"+s.Name))
	}
	m := "train_peak_rss_mib_" + shapes[len(shapes)-1].Name + "_"
	row(w, "peak MiB, 135m", r.cell("%.0f", m+"ours"), r.cell("%.0f", m+"ours_fp32"), r.cell("%.0f", m+"torch"), r.cell("%.0f", m+"torch_newest"),
		r.cell("%.0f", m+"torch_newest_bf16"))
}

func (r *runner) version(peer string) string {
	if v := r.peers[peer]; v != "" {
		return v
	}
	return "not there"
}

func (r *runner) boundTable(w *tabwriter.Writer) {
	title(w, "Bound of a step: the faster of oneDNN "+r.version(oneDNN)+" and our kernel for each product, our kernels for the rest; milliseconds")
	row(w, "", "products", "attention", "rows", "softmax", "optimizer", "bound", "step", "beyond it", "tokens/s bound", "reached")
	for _, s := range r.chosen() {
		for _, p := range []string{bf16, fp32} {
			name := s.Name + "_" + p
			cells := []string{s.Name + " " + p}
			for _, kind := range []string{"products", partAttention, partRows, partHead, partOptimizer} {
				cells = append(cells, r.milliseconds(r.figures["bound_seconds_"+name+"_"+kind]))
			}
			bound, step := r.seconds(s, "bound_tokens_per_s_"+name), r.seconds(s, "train_tokens_per_s_"+name)
			beyond := 0.0
			if step > 0 && bound > 0 {
				beyond = step - bound
			}
			row(w, append(cells, r.milliseconds(bound), r.milliseconds(step), r.milliseconds(beyond), r.cell("%.0f", "bound_tokens_per_s_"+name),
				r.percent("train_bound_fraction_"+name))...)
		}
	}
}

func (r *runner) milliseconds(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 1000*seconds)
}

// seconds are those of a step at a figure's tokens a second.
func (r *runner) seconds(s Shape, figure string) float64 {
	if v := r.figures[figure]; v > 0 {
		return float64(s.rows()) / v
	}
	return 0
}

// comparison is a product that both sides were measured at.
type comparison struct {
	request      string
	ours, theirs float64 // GFLOP/s
	lost         float64 // seconds of a step that our kernel takes longer
}

func (r *runner) compare(request string, p product, ours, theirs *match.Entry) {
	if theirs == nil {
		return
	}
	r.compared = append(r.compared, comparison{request, p.flops() / ours.Best.Seconds / 1e9, p.flops() / theirs.Best.Seconds / 1e9,
		float64(p.times) * (ours.Best.Seconds - theirs.Best.Seconds)})
}

// mostLost is how many products the table of losses shows.
const mostLost = 8

func (r *runner) lostTable(w *tabwriter.Writer) {
	slices.SortFunc(r.compared, func(a, b comparison) int { return cmp.Compare(b.lost, a.lost) })
	worst := slices.DeleteFunc(slices.Clone(r.compared), func(c comparison) bool { return c.lost <= 0 })
	if len(worst) == 0 {
		return
	}
	title(w, "Products in which oneDNN is faster: GFLOP/s, and what that costs a step in milliseconds")
	row(w, "kind precision M N K threads", "restar", "oneDNN", "cost")
	for _, c := range worst[:min(mostLost, len(worst))] {
		row(w, c.request, fmt.Sprintf("%.0f", c.ours), fmt.Sprintf("%.0f", c.theirs), r.milliseconds(c.lost))
	}
}

func (r *runner) sampleTable(w *tabwriter.Writer) {
	title(w, fmt.Sprintf("Sampling: ids a second (llama.cpp %s)", r.version(llamaCpp)))
	row(w, "", "restar bf16", "restar fp32", "llama.cpp bf16", "PyTorch Debian", "newest fp32", "newest bf16")
	row(w, "1 sequence, 135m", r.cell("%.1f", "decode1_tokens_per_s_135m_bf16"), r.cell("%.1f", "decode1_tokens_per_s_135m_fp32"),
		r.cell("%.1f", "llamacpp_decode1_tokens_per_s_135m_bf16"), "-", "-", r.cell("%.1f", "torch_newest_decode1_tokens_per_s_135m_bf16"))
	for _, s := range r.chosen() {
		name := "decode64_tokens_per_s_" + s.Name
		row(w, fmt.Sprintf("%d sequences, %s", together, s.Name), r.cell("%.0f", name+"_bf16"), r.cell("%.0f", name+"_fp32"), "-",
			r.cell("%.0f", "torch_"+name), r.cell("%.0f", "torch_newest_"+name+"_fp32"), r.cell("%.0f", "torch_newest_"+name+"_bf16"))
		after := "decode64_after_prompts_per_s_" + s.Name
		row(w, "  once prompts are read", r.cell("%.0f", after+"_bf16"), "-", "-", r.cell("%.0f", "torch_"+after), "-", "-")
	}
}

func (r *runner) barTable(w *tabwriter.Writer) {
	title(w, "Bars")
	for _, b := range bars {
		verdict := "not measured"
		if v, ok := r.figures[b.figure]; ok && v >= b.least {
			verdict = "reached"
		} else if ok {
			verdict = "missed"
		}
		row(w, b.says, r.cell("%.3g", b.figure), fmt.Sprintf("%.3g", b.least), verdict)
	}
}
