package answers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/restar-rl/restar/workers/verify"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	barAfter   = 2 * time.Second // shorter work needs no bar
	shown      = 60              // characters of an answer in the table
	barRefresh = 200 * time.Millisecond
)

// printer writes verdicts as they come and their counts at the end.
type printer struct {
	out    *bufio.Writer
	asJSON bool
	table  *tabwriter.Writer
	counts map[verify.Outcome]map[string]int
	total  int
	began  time.Time
	bar    *progressbar.ProgressBar // nil where nobody watches or the size is not known
	size   int64
}

func newPrinter(out, progress io.Writer, asJSON bool, size int64) *printer {
	p := &printer{out: bufio.NewWriter(out), asJSON: asJSON, counts: map[verify.Outcome]map[string]int{}, began: time.Now(), size: size}
	p.table = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if f, ok := progress.(*os.File); ok && size > 0 && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(true), progressbar.OptionSetDescription("judging"),
			progressbar.OptionThrottle(barRefresh), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	return p
}

// line is a verdict as JSON.
type line struct {
	Line int    `json:"line"`
	ID   string `json:"id,omitempty"`
	verify.Verdict
}

func (p *printer) print(r row, v verify.Verdict) error {
	p.total++
	if p.counts[v.Outcome] == nil {
		p.counts[v.Outcome] = map[string]int{}
	}
	p.counts[v.Outcome][v.Path]++
	if p.asJSON {
		data, err := json.Marshal(line{r.line, r.ID, v})
		if err == nil {
			_, err = p.out.Write(append(data, '\n'))
		}
		return err
	}
	_, err := fmt.Fprintf(p.table, "%s\t%s\t%s\t%s\t%s\n", r.name(), v.Outcome, v.Path, short(r.Gold)+"  ~  "+short(r.Prediction), v.Reason)
	return err
}

// short fits text into a column.
func short(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if r := []rune(s); len(r) > shown {
		return "…" + string(r[len(r)-shown:])
	}
	return s
}

// advance shows how much of the input is done, once the work has taken a while, and lets verdicts be seen.
func (p *printer) advance(read int64) {
	_ = p.table.Flush()
	_ = p.out.Flush()
	if p.bar != nil && time.Since(p.began) > barAfter {
		_ = p.bar.Set64(min(read, p.size))
	}
}

// end writes the counts below the table, unless a bad line ended the work.
func (p *printer) end(bad error) error {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	if !p.asJSON && bad == nil {
		fmt.Fprintf(p.out, "\n%d judged", p.total)
		for _, outcome := range []verify.Outcome{verify.Correct, verify.Wrong, verify.Unknown} {
			n := 0
			var by []string
			for path, k := range p.counts[outcome] {
				n += k
				if path == "" {
					path = "not compared"
				}
				by = append(by, fmt.Sprintf("%s %d", path, k))
			}
			slices.Sort(by)
			fmt.Fprintf(p.out, "\n%-8s %6d  %5.1f%%  %s", outcome, n, 100*float64(n)/float64(max(p.total, 1)), strings.Join(by, ", "))
		}
		fmt.Fprintln(p.out)
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	return bad
}
