package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anneal/internal/fileio"
	"anneal/lab"
	"anneal/scaling"
)

type scalingFitCmd struct {
	Points    string  `arg:"" name:"points" help:"A CSV with the columns params, tokens, loss, and optionally flops and unique_tokens; or the directory of a study, with its points.csv."`
	Out       outFile `placeholder:"FILE" example:"fit.json" help:"File of the fit, for predict. Default: fit.json in the study; none for a CSV."`
	Resamples count   `default:"1000" help:"Resamples for the intervals; 0: no intervals."`
	Seed      uint64  `default:"1" help:"Seed of the resamples."`
	Beta      float64 `placeholder:"X" help:"Hold the exponent of the tokens instead of fitting it: 0.37 (Besiroglu et al. 2024). Runs whose tokens differ by less than 20 times cannot tell it from E."`
	From      int64   `placeholder:"TOKENS" help:"Leave out points of fewer tokens: the first millions follow no power law."`
	svgFlag
}

func (scalingFitCmd) Help() string {
	return example("anneal scaling fit points.csv --out fit.json --svg fit.svg",
		"anneal scaling fit runs/study",
		"anneal scaling predict fit.json --flops 1e21") +
		"\n\nThe law is L(N, D) = E + A/N^alpha + B/D^beta: the loss, in nats per token, of a model with N " +
		"parameters after D tokens.\nN counts matrix parameters with the output head, without the lookup " +
		"embedding, so that training takes 6·N·D FLOPs.\nThe fit minimises the sum of Huber losses of ln L; " +
		"intervals are of a bootstrap. Two older ways to find the best size for\na budget, envelope and IsoFLOP, " +
		"are shown beside it where the points allow them.\nA fit needs 6 points, with 3 sizes and 3 numbers of tokens."
}

// mostPoints is the size of a file of points in bytes: some 300,000 of them.
const mostPoints = 16 << 20

func (c scalingFitCmd) Run(s *session) error {
	start := time.Now()
	if c.Beta < 0 || c.Beta > 5 || c.From < 0 {
		return &usageError{"--beta is an exponent from 0.01 to 5, --from a number of tokens",
			"try --beta 0.37 --from 5000000"}
	}
	path, out := c.Points, c.Out
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(c.Points, "points.csv")
		if out == "" {
			out = outFile(filepath.Join(c.Points, fitFile))
		}
	}
	text, err := fileio.ReadSmall(path, mostPoints)
	if errors.Is(err, fs.ErrNotExist) && path != c.Points {
		return &usageError{c.Points + " has no points.csv", "give a CSV, or the directory of a study that " +
			"`anneal scaling run` made"}
	}
	if err != nil {
		return err
	}
	points, err := scaling.ReadPoints(bytes.NewReader(text))
	if err != nil {
		return asUsage(fmt.Errorf("%s: %w", path, err))
	}
	points = slices.DeleteFunc(points, func(p scaling.Point) bool { return p.Tokens < float64(c.From) })
	f, err := scaling.FitPoints(points, c.Beta)
	if err != nil {
		return asUsage(fmt.Errorf("%s: %w", path, err))
	}
	s.status.update(func(int) string { return fmt.Sprintf("fitting %d resamples", c.Resamples) })
	f.Bootstrap(int(c.Resamples), c.Seed)
	if err := s.draw(lab.ScalingChart(f), c.SVG); err != nil {
		return err
	}
	if out != "" {
		if err := fileio.Write(string(out), f.Write); err != nil {
			return fmt.Errorf("cannot write the fit: %w", err)
		}
	}
	approaches := approachesOf(f)
	s.printFit(f, approaches)
	elapsed := time.Since(start)
	s.closing(fmt.Sprintf("a law of %d points", len(points)), string(out), elapsed, c.next(out, f))
	return s.emit(fitJSON(f, approaches, out, elapsed))
}

// next predicts ten times the compute of the points.
func (c scalingFitCmd) next(out outFile, f *scaling.Fit) string {
	if out == "" {
		return command("anneal", "scaling", "fit", c.Points, "--out", "fit.json")
	}
	return out.next("anneal scaling predict", fmt.Sprintf("--flops %.1e", 10*f.Reach()))
}

// approach is a way to find the exponent of compute-optimal sizes.
type approach struct {
	name     string
	frontier scaling.Frontier
	err      error // why the points do not allow it
}

// approachesOf returns the two ways besides the law.
func approachesOf(f *scaling.Fit) []approach {
	envelope, noEnvelope := scaling.Envelope(f.Points)
	profiles, noProfiles := scaling.IsoFLOP(f.Points)
	return []approach{{"envelope", envelope, noEnvelope}, {"isoflop", profiles, noProfiles}}
}

// lawParts are the numbers of a law, for tables and scripts.
var lawParts = []struct {
	name, key string
	of        func(scaling.Law) float64
}{
	{"E", "E", func(l scaling.Law) float64 { return l.E }},
	{"A", "A", func(l scaling.Law) float64 { return l.A }},
	{"B", "B", func(l scaling.Law) float64 { return l.B }},
	{"α", "alpha", func(l scaling.Law) float64 { return l.Alpha }},
	{"β", "beta", func(l scaling.Law) float64 { return l.Beta }},
}

func sizeExponent(l scaling.Law) float64 {
	a, _ := l.Exponents()
	return a
}

// budgets are the FLOPs for which a fit shows compute-optimal models, as multiples of its largest point.
var budgets = []float64{1, 10, 100}

// printHeldBack says how far the points themselves trust their law.
func (s *session) printHeldBack(list []scaling.HeldBack) {
	if len(list) == 0 {
		return
	}
	s.printf("\nthe law of the other points, where these are left out\n\n")
	missed := 0.0
	for _, h := range list {
		which := map[string]string{"tokens": "the longest runs", "params": "the largest size"}[h.Column]
		side := "high"
		if h.Mean < 0 {
			side = "low"
		}
		s.printf("%-22s  predicted %.2g %% too %s, at worst %.2g %% off (%s, %.3g times the next)\n", which,
			100*math.Abs(h.Mean), side, 100*math.Abs(h.Worst), plural(h.Points, "point"), h.Factor)
		missed = max(missed, math.Abs(h.Mean))
	}
	if missed > 0.01 {
		s.prosef("", "A law that misses the end of its own points by more than 1 %% misses what lies far beyond it by "+
			"more. Look at the chart for sizes or lengths of another kind, such as models too small or too briefly "+
			"trained to copy, and leave them out.\n")
	}
}

func (s *session) printFit(f *scaling.Fit, approaches []approach) {
	if n := f.Undetermined(); n > 0 {
		s.warn(fmt.Sprintf("%s of %s resamples do not show that losses fall with N and with D; intervals leave them "+
			"out", thousands(int64(n)), thousands(int64(len(f.Resamples)))))
	}
	s.printf("\nL(N, D) = E + A/N^α + B/D^β, in nats per token; half of the points are within %.2g %% of it\n\n",
		100*f.Error())
	head := ""
	if len(f.Resamples) > 0 {
		head = fmt.Sprintf("%.0f %% interval", 100*scaling.Confidence)
	}
	s.printf("%-22s  %-10s  %s\n", "", "fit", head)
	digits := format("%.4g")
	for _, part := range lawParts {
		s.printf("%-22s  %-10s  %s\n", part.name, digits(part.of(f.Law)), within(f.Interval(part.of), digits))
	}
	s.printf("\nexponent a of the compute-optimal size, N* ∝ C^a; tokens grow as C^(1−a)\n\n")
	places := format("%.3f")
	s.printf("%-22s  %-10s  %s\n", "law", places(sizeExponent(f.Law)), within(f.Interval(sizeExponent), places))
	for i, bias := range []string{
		"lowest curves: only trained sizes win, so it moves in steps",
		"parabolas of equal FLOPs: wide or one-sided sizes bias it",
	} {
		a := approaches[i]
		if a.err != nil {
			s.row(fmt.Sprintf("%-22s  %-10s ", a.name, "–"), a.err.Error())
			continue
		}
		s.row(fmt.Sprintf("%-22s  %-10s ", a.name, places(a.frontier.Exponent)), bias)
	}
	s.printHeldBack(f.HeldBack())
	s.printf("\ncompute-optimal models, by the law\n\n%-10s  %-23s  %-23s  %-17s  %s\n",
		"FLOPs", "parameters", "tokens", "tokens/param", "loss (nats/token)")
	for _, times := range budgets {
		c := times * f.Reach()
		m := f.Law.Optimum(c)
		of := func(q func(scaling.Model) float64, form func(float64) string) string {
			text := form(q(m))
			if in := f.Interval(func(l scaling.Law) float64 { return q(l.Optimum(c)) }); in != nil {
				text += fmt.Sprintf(" (%s–%s)", form(in.Low), form(in.High))
			}
			return text
		}
		s.printf("%-10s  %-23s  %-23s  %-17s  %s\n", flops(c),
			of(func(m scaling.Model) float64 { return m.Params }, short),
			of(func(m scaling.Model) float64 { return m.Tokens }, short),
			of(scaling.Model.Ratio, short),
			of(func(m scaling.Model) float64 { return m.Loss }, places))
	}
	s.printf("\n")
}

func fitJSON(f *scaling.Fit, approaches []approach, out outFile, elapsed time.Duration) map[string]any {
	intervals := map[string]any{"exponent": intervalJSON(f.Interval(sizeExponent))}
	for _, part := range lawParts {
		intervals[part.key] = intervalJSON(f.Interval(part.of))
	}
	list := []any{map[string]any{"name": "law", "exponent": sizeExponent(f.Law)}}
	for _, a := range approaches {
		if a.err != nil {
			list = append(list, map[string]any{"name": a.name, "why_not": a.err.Error()})
		} else {
			list = append(list, map[string]any{
				"name": a.name, "exponent": number(a.frontier.Exponent), "optima": a.frontier.Optima,
			})
		}
	}
	var optima []scaling.Model
	for _, times := range budgets {
		optima = append(optima, f.Law.Optimum(times*f.Reach()))
	}
	return map[string]any{
		"law": f.Law, "intervals": intervals, "confidence": scaling.Confidence, "objective": f.Objective,
		"median_error": f.Error(), "points": len(f.Points), "resamples": len(f.Resamples),
		"undetermined": f.Undetermined(), "held_back": f.HeldBack(), "approaches": list, "optima": optima,
		"out": string(out), "seconds": elapsed.Seconds(),
	}
}
