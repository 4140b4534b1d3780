package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/lab"
	"anneal/scaling"
)

type scalingFitCmd struct {
	Points    string   `arg:"" name:"points" help:"A CSV with the columns params, tokens, loss, and optionally flops and unique_tokens; or the directory of a study, with its points.csv."`
	Out       outFile  `placeholder:"FILE" example:"fit.json" help:"File of the fit, for predict. Default: fit.json in the study; none for a CSV."`
	Resamples count    `default:"1000" help:"Resamples for the intervals, at least 100; 0: no intervals."`
	Seed      uint64   `default:"1" help:"Seed of the resamples."`
	Beta      *float64 `placeholder:"X" help:"Fix the exponent of the tokens at X; 0: fit it. Default: 0.37 (Besiroglu et al. 2024) in a study, whose tokens differ too little to tell it from E; fitted in a CSV."`
	From      *tokens  `placeholder:"TOKENS" help:"Leave out points of fewer tokens. Default: 3000000 in a study, since the first millions follow no power law; none in a CSV."`
	svgFlag
}

func (scalingFitCmd) Help() string {
	return example("anneal scaling fit points.csv --out fit.json --svg fit.svg",
		"anneal scaling fit runs/study",
		"anneal scaling predict fit.json --flops 1e21") +
		"\n\nThe law is L(N, D) = E + A/N^alpha + B/D^beta: the loss, in nats per token, of a model with N " +
		"parameters after D tokens.\nN counts matrix parameters with the output head, without the lookup " +
		"embedding, so that training takes 6·N·D FLOPs.\nThe fit minimises the sum of Huber losses of ln L; " +
		"intervals come from a bootstrap. Two older ways to find the best size for\na budget, envelope and IsoFLOP, " +
		"are shown too where the points allow them.\nA fit needs 6 points, with 3 sizes and 3 numbers of tokens."
}

// These are the settings for studies, whose tokens differ by 8 times and whose shortest runs may end before a model
// has learnt to copy. In two studies the resulting fits predicted a run 8 times as large within 1.2 %; fits of all
// five numbers were off by 5 to 8 %.
const (
	studyBeta = 0.37
	studyFrom = 3_000_000

	enoughSpan = 20 // ratio of most to fewest tokens from which β can be fitted too
)

// span returns the ratio of the most to the fewest tokens of points; 0 without points.
func span(points []scaling.Point) float64 {
	if len(points) == 0 {
		return 0
	}
	by := func(a, b scaling.Point) int { return cmp.Compare(a.Tokens, b.Tokens) }
	return slices.MaxFunc(points, by).Tokens / slices.MinFunc(points, by).Tokens
}

// mostPoints is the largest size in bytes of a file of points: some 300,000 points.
const mostPoints = 16 << 20

// mostResamples is far more than an interval needs; a resample takes about as long as the fit. A fit holds all of them,
// within mostFitValues.
const mostResamples = 100_000

// leastResamples is the fewest resamples of an interval: 2.5 % of them must be more than one or two.
const leastResamples = 100

func (c scalingFitCmd) Run(s *session) error {
	start := time.Now()
	path, out := c.Points, c.Out
	rule := fitRule{held: c.Beta != nil, cut: c.From != nil}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		rule.beta, rule.from = studyBeta, studyFrom
		path = filepath.Join(c.Points, "points.csv")
		if out == "" {
			out = outFile(filepath.Join(c.Points, fitFile))
		}
	}
	for flag, file := range map[string]outFile{"--out": out, "--svg": c.SVG} {
		if err := file.differs(flag, []string{path}); err != nil {
			return err
		}
	}
	if rule.held {
		rule.beta = *c.Beta
	}
	if rule.cut {
		rule.from = *c.From
	}
	switch {
	case c.Resamples > mostResamples:
		return &usageError{fmt.Sprintf("--resamples %d is more than %s", c.Resamples, units.Commas(mostResamples)),
			"try --resamples 1000"}
	case c.Resamples > 0 && c.Resamples < leastResamples:
		return &usageError{fmt.Sprintf("--resamples %d is too few for an interval of 95 %%, which needs at least %d",
			c.Resamples, leastResamples), "try --resamples 1000, or --resamples 0 for no intervals"}
	}
	if err := scaling.CheckBeta(rule.beta); err != nil {
		return asUsage(fmt.Errorf("--beta: %w", err))
	}
	points, err := c.read(path)
	if err != nil {
		return err
	}
	f, used, err := rule.fit(s, points)
	if err != nil {
		return asUsage(fmt.Errorf("%s: %w", path, err))
	}
	s.status.update(func(int) string { return "fitting " + units.Count(int(c.Resamples), "resample") })
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
	s.closing("a law of "+units.Count(used, "point"), string(out), elapsed, c.next(out, f))
	return s.emit(fitJSON(f, approaches, out, elapsed))
}

// read reads the points of a study or of a CSV.
func (c scalingFitCmd) read(path string) ([]scaling.Point, error) {
	text, err := fileio.ReadSmall(path, mostPoints)
	if errors.Is(err, fs.ErrNotExist) && path != c.Points {
		return nil, &usageError{c.Points + " has no points.csv", "give a CSV, or the directory of a study that " +
			"`anneal scaling run` made"}
	}
	if err != nil {
		return nil, asData(fmt.Errorf("%w\n  give the path of a CSV with the columns params, tokens and loss, or the "+
			"directory of a study that `anneal scaling run` made", err))
	}
	points, err := scaling.ReadPoints(bytes.NewReader(text))
	if err != nil {
		return nil, asUsage(fmt.Errorf("%s: %w", path, err))
	}
	return points, nil
}

// A fitRule holds the settings of a fit. A setting that no flag gives may change with the points.
type fitRule struct {
	beta      float64 // at which β is held; 0 to fit it
	from      tokens  // points of shorter runs are left out
	held, cut bool    // whether --beta gives beta, and --from from
}

// fit returns the law of points and how many of them it used.
func (r fitRule) fit(s *session, points []scaling.Point) (*scaling.Fit, int, error) {
	kept := slices.DeleteFunc(slices.Clone(points), func(p scaling.Point) bool { return p.Tokens < float64(r.from) })
	differ := kept // in tokens, as far as a flag decides it
	if !r.cut {
		differ = points
	}
	if span(differ) >= enoughSpan { // then nothing need be held or left out
		if !r.held {
			r.beta = 0
		}
		if !r.cut {
			r.from, kept = 0, points
		}
	}
	f, err := scaling.FitPoints(kept, r.beta)
	if err != nil && !r.cut { // a small study has too few points without its shortest runs
		kept = points
		f, err = scaling.FitPoints(kept, r.beta)
	}
	if err != nil && len(kept) < len(points) {
		err = fmt.Errorf("%w\n  --from %s leaves %s of %s", err, units.Commas(int64(r.from)),
			units.Commas(len(kept)), units.Count(len(points), "point"))
	}
	if err != nil {
		return nil, 0, err
	}
	switch {
	case !r.held && r.beta > 0:
		s.notef("β is held at %g, since runs of a ladder differ too little in tokens to tell it from E, and %s of %s "+
			"are used; --beta 0 --from 0 fits all (docs/scaling.md)", r.beta, units.Commas(len(kept)),
			units.Count(len(points), "point"))
	case len(kept) < len(points) && !r.cut:
		s.notef("%s of %s are used, those after %s tokens; --from 0 fits all", units.Commas(len(kept)),
			units.Count(len(points), "point"), units.Commas(int64(r.from)))
	}
	return f, len(kept), nil
}

// next returns the command that predicts a model for ten times the compute of the points.
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
	err      error // why the points do not suffice
}

// approachesOf returns the two approaches other than the law.
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

// printHeldBack prints how well a law fitted to the other points predicts the points held back.
func (s *session) printHeldBack(list []scaling.HeldBack) {
	if len(list) == 0 {
		return
	}
	s.printf("\nhow a law of the other points alone predicts\n\n")
	missed := 0.0
	for _, h := range list {
		which := map[string]string{"tokens": "the longest runs", "params": "the largest size"}[h.Column]
		side := "high"
		if h.Mean < 0 {
			side = "low"
		}
		s.printf("%-22s  predicted %.2g %% too %s, at worst %.2g %% off (%s, %.3g times the next)\n", which,
			100*math.Abs(h.Mean), side, 100*math.Abs(h.Worst), units.Count(h.Points, "point"), h.Factor)
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
		s.warn(fmt.Sprintf("in %s of %s resamples, losses do not fall with N and with D; intervals leave these "+
			"resamples out", units.Commas(n), units.Commas(len(f.Resamples))))
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
		"beta_held": f.Held, "median_error": f.Error(), "points": len(f.Points), "resamples": len(f.Resamples),
		"undetermined": f.Undetermined(), "held_back": f.HeldBack(), "approaches": list, "optima": optima,
		"out": string(out), "seconds": elapsed.Seconds(),
	}
}
