package bench

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"anneal/hardware"
	"anneal/plan/cluster"
)

// publishedCSV holds measured runs: numbers with short labels and their sources. Cells without a figure are empty, and
// the column missing names the cells that take a default.
//
//go:embed published.csv
var publishedCSV []byte

// A PublishedRun is a published measurement of a run beside its prediction. Times are in seconds.
type PublishedRun struct {
	ID          string  `json:"id"`
	Source      string  `json:"source"`
	Model       string  `json:"model"`
	Set         string  `json:"set"`
	Missing     string  `json:"missing,omitempty"` // columns left to defaults, which the source does not give
	Accelerator string  `json:"accelerator"`
	Published   float64 `json:"published_step_seconds"`
	How         string  `json:"from"` // step time, tokens/s or TFLOP/s
	Predicted   float64 `json:"predicted_step_seconds"`
	Error       float64 `json:"error"` // of the predicted time, relative
	Fitted      bool    `json:"fitted"`

	Run *cluster.Run `json:"-"`
}

// Complete reports whether the source gives everything that the prediction needs.
func (p *PublishedRun) Complete() bool { return p.Missing == "" }

// PublishedRuns returns the built-in runs.
func PublishedRuns() ([]*PublishedRun, error) { return ReadPublished(bytes.NewReader(publishedCSV)) }

// ReadPublished reads runs from CSV with a header; columns that it does not know are ignored, and so are rows without
// a shape or a figure. A row that no run can have is an error, and so is a file without a run. Every third run of a
// source on one kind of accelerator, starting with the first, is used to fit the constants.
func ReadPublished(r io.Reader) ([]*PublishedRun, error) {
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("published runs: %w", err)
	}
	if len(records) == 0 {
		return nil, errors.New("published runs: the file is empty")
	}
	var list []*PublishedRun
	seen := map[string]int{}
	for _, record := range records[1:] {
		row := cells{}
		for i, name := range records[0] {
			row[name] = strings.TrimSpace(record[i])
		}
		p, err := row.run()
		if err != nil {
			return nil, fmt.Errorf("published run %s: %w", row["id"], err)
		}
		if p == nil {
			continue
		}
		key := p.Set + " " + p.Accelerator
		p.Fitted = seen[key]%3 == 0
		seen[key]++
		list = append(list, p)
	}
	if list == nil {
		return nil, errors.New("published runs: no row has a shape and a figure\n  a row needs layers, hidden, " +
			"n_gpu, seq_len, global_batch_seqs, accelerator, and one of step_time_s, tokens_per_s_total, " +
			"tokens_per_s_per_gpu and tflops_per_gpu")
	}
	return list, nil
}

// Predict simulates a published run.
func (p *PublishedRun) Predict() error {
	s, err := p.Run.Shortened()
	if err != nil {
		return err
	}
	p.Predicted = s.Seconds
	p.Error = p.Predicted/p.Published - 1
	return nil
}

// Summary says how close the predictions of some runs are.
type Summary struct {
	Runs     int     `json:"runs"`
	Median   float64 `json:"median_absolute_error"`
	Within10 float64 `json:"within_10_percent"` // share of the runs
	Within20 float64 `json:"within_20_percent"`
	Bias     float64 `json:"median_error"`
}

// Summarise returns the summary of the runs for which keep returns true.
func Summarise(list []*PublishedRun, keep func(*PublishedRun) bool) Summary {
	var absolute, signed []float64
	var s Summary
	for _, p := range list {
		if !keep(p) {
			continue
		}
		e := math.Abs(p.Error)
		absolute, signed = append(absolute, e), append(signed, p.Error)
		s.Runs++
		if e <= 0.1 {
			s.Within10++
		}
		if e <= 0.2 {
			s.Within20++
		}
	}
	if s.Runs == 0 {
		return s
	}
	slices.Sort(absolute)
	slices.Sort(signed)
	s.Median, s.Bias = absolute[s.Runs/2], signed[s.Runs/2]
	s.Within10 /= float64(s.Runs)
	s.Within20 /= float64(s.Runs)
	return s
}

// cells holds the cells of a row by column.
type cells map[string]string

func (c cells) number(name string) float64 {
	x, err := strconv.ParseFloat(c[name], 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}

// count returns a whole number, at most one more than Check of a run permits.
func (c cells) count(name string) int { return int(min(c.number(name), 1<<30+1)) }

func (c cells) has(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(c[name]), w) })
}

// run returns the run of a row, or nil if it has no shape or no figure.
func (c cells) run() (*PublishedRun, error) {
	if c.count("layers") == 0 || c.count("hidden") == 0 || c.count("n_gpu") == 0 ||
		c.count("seq_len") == 0 || c.count("global_batch_seqs") == 0 || c["accelerator"] == "" {
		return nil, nil
	}
	r := &cluster.Run{Shape: c.shape(), Batch: c.count("global_batch_seqs"), Stack: c.stack()}
	var err error
	if r.Cluster, err = c.cluster(); err != nil {
		return nil, err
	}
	c.mesh(r)
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Mesh.Recompute == "" {
		r.Mesh.Recompute = leastRecompute(r)
	}
	p := &PublishedRun{
		ID: c["id"], Source: c["source"], Model: c["model"], Set: c["set"], Missing: c["missing"],
		Accelerator: r.Cluster.Accelerator.Name, Run: r,
	}
	if p.Published, p.How = c.seconds(r); p.Published == 0 {
		return nil, nil
	}
	return p, nil
}

// seconds returns the time of a step and what it was computed from.
func (c cells) seconds(r *cluster.Run) (float64, string) {
	n, tokens := c.number("n_gpu"), float64(r.Batch*r.Shape.Context)
	switch {
	case c.number("step_time_s") > 0:
		return c.number("step_time_s"), "step time"
	case c.number("tokens_per_s_total") > 0:
		return tokens / c.number("tokens_per_s_total"), "tokens/s"
	case c.number("tokens_per_s_per_gpu") > 0:
		return tokens / (n * c.number("tokens_per_s_per_gpu")), "tokens/s"
	case c.number("tflops_per_gpu") > 0:
		return tokens * c.flops(&r.Shape) / (n * 1e12 * c.number("tflops_per_gpu")), "TFLOP/s"
	default:
		return 0, ""
	}
}

// flops returns the operations of a token as the source of a row counts them.
func (c cells) flops(s *cluster.Shape) float64 {
	switch f := s.FLOPs(); {
	case c.has("counted", "hardware") || c.has("tflops_kind", "hardware"):
		// Narayanan et al., arXiv 2104.04473, equation 3: with a second forward pass, attention whole.
		l, h, v := float64(s.Layers), float64(s.Dim), float64(s.Vocab)
		return 96 * l * h * h * (1 + float64(s.Context)/(6*h) + v/(16*l*h))
	case c.has("counted", "causal") || c.has("attn_flops_counted", "halved"):
		return f - 6*float64(s.Layers*s.Heads*s.HeadDim*s.Context)
	default:
		return f
	}
}

func (c cells) cluster() (*hardware.Cluster, error) {
	name := strings.ToLower(c["accelerator"])
	if strings.Contains(name, "500 w") {
		name = "h100-96gb-500w"
	}
	name, _, _ = strings.Cut(name, " (")
	known, err := hardware.Lookup(name)
	if err != nil {
		return nil, err
	}
	devices := c.count("n_gpu")
	node := known.PerNode
	if n := c.count("gpus_per_node"); n > 0 && n < 72 {
		node = min(n, devices)
	}
	k := known.Cluster(devices, node)
	if n := c.count("gpus_per_node"); known.Cores == 0 && n > known.PerNode { // a slice
		k.Levels[0].Devices = n
	}
	if rate := c.number("inter_node"); rate > 0 {
		k.Levels[1].Bandwidth = rate * 1e9 / 8
	}
	return k, nil
}
