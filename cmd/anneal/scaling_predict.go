package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/internal/nearest"
	"anneal/internal/units"
	"anneal/lab"
	"anneal/scaling"
)

type scalingPredictCmd struct {
	Fit    string   `arg:"" optional:"" default:"besiroglu" help:"A fit made by anneal scaling fit (its file, or the directory of its study), or a published law of English web text: besiroglu (default) or hoffmann."`
	FLOPs  quantity `name:"flops" placeholder:"C" help:"Training compute in FLOPs, such as 1e21."`
	Params quantity `placeholder:"N" help:"Parameters, such as 7B."`
	Tokens quantity `placeholder:"D" help:"Training tokens, such as 2T."`
	Loss   nats     `placeholder:"L" help:"Loss to reach, in nats per token."`
	Unique quantity `name:"unique-tokens" placeholder:"U" help:"Number of unique tokens in the data. Repeated tokens are worth less, and so are parameters that the unique ones cannot fill."`
	Serve  quantity `placeholder:"TOKENS" help:"Also find the model that reaches the same loss at the lowest cost of training it and serving this many tokens."`
	svgFlag
}

func (scalingPredictCmd) Help() string {
	return example("anneal scaling predict --flops 1e21",
		"anneal scaling predict runs/study --params 7B --tokens 2T",
		"anneal scaling predict fit.json --loss 2.1 --serve 1T",
		"anneal scaling predict --flops 1e21 --unique-tokens 10B") +
		"\n\nWith one of --flops, --params, --tokens and --loss it predicts the compute-optimal model; with two, " +
		"the model that they determine.\nTraining takes 6·N·D FLOPs, serving 2·N for each token. besiroglu is the " +
		"default because it agrees with the tokens that\nChinchilla was trained on, about 20 per parameter; the " +
		"rounded constants of hoffmann give 93 at the same compute.\nA fit of your own text is better than both."
}

// fitFile is the name of a fit in the directory of its study.
const fitFile = "fit.json"

// mostFit is the largest size of a fit's file.
const mostFit = 64 << 20

var mostFitValues = jsonlimit.Limits{Objects: 500_000, Values: 3_000_000}

// published are the laws that predict knows by name.
var published = map[string]struct {
	law    scaling.Law
	source string
}{
	"besiroglu": {scaling.Besiroglu, "Besiroglu et al. 2024, arXiv 2404.10102"},
	"hoffmann":  {scaling.Hoffmann, "Hoffmann et al. 2022, arXiv 2203.15556, approach 3"},
}

// open returns the requested fit and its name.
func (c scalingPredictCmd) open() (*scaling.Fit, string, error) {
	if p, ok := published[c.Fit]; ok {
		return &scaling.Fit{Law: p.law}, "the law of " + p.source + ", which is published without intervals", nil
	}
	path := c.Fit
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, fitFile)
		if _, err := os.Stat(path); err != nil {
			return nil, "", &usageError{c.Fit + " has no " + fitFile,
				"try `" + command("anneal", "scaling", "fit", c.Fit) + "` first"}
		}
	}
	text, err := fileio.ReadSmall(path, mostFit)
	if near := nearest.To(path, slices.Collect(maps.Keys(published))); errors.Is(err, fs.ErrNotExist) && near != "" {
		return nil, "", &usageError{path + " is neither a file nor a published law", "try " + near}
	}
	if err != nil {
		return nil, "", err
	}
	if err := mostFitValues.Check(text); err != nil {
		return nil, "", asData(fmt.Errorf("%s: %w", path, err))
	}
	f, err := scaling.ReadFit(text)
	if err != nil {
		return nil, "", asData(fmt.Errorf("%s is %w", path, err))
	}
	return f, fmt.Sprintf("%s, a fit of %s", path, units.Count(len(f.Points), "point")), nil
}

// newPoints counts the points of a study that a fit of it does not know, among those long enough for it.
func newPoints(study string, f *scaling.Fit) (n int) {
	text, err := fileio.ReadSmall(filepath.Join(study, lab.PointsFile), mostPoints)
	if err != nil {
		return 0 // of another file
	}
	points, err := scaling.ReadPoints(bytes.NewReader(text))
	if err != nil || len(f.Points) == 0 {
		return 0
	}
	least := slices.MinFunc(f.Points, func(a, b scaling.Point) int { return cmp.Compare(a.Tokens, b.Tokens) }).Tokens
	for _, p := range points {
		if p.Tokens >= least && !slices.Contains(f.Points, p) {
			n++
		}
	}
	return n
}

// hint suggests a question that can be answered.
func hint(err error) string {
	switch {
	case errors.Is(err, scaling.ErrRepeatedLoss):
		return "try --flops 1e21 --unique-tokens 10B, or --params 7B --tokens 2T --unique-tokens 500B"
	case errors.Is(err, scaling.ErrTwoModels):
		return "try --params 7B --loss 2.1, or --flops alone"
	}
	return "try --flops 1e21, or --params 7B --tokens 2T"
}

func (c scalingPredictCmd) Run(s *session) error {
	q := scaling.Question{
		Params: float64(c.Params), Tokens: float64(c.Tokens), FLOPs: float64(c.FLOPs), Loss: float64(c.Loss),
		Unique: float64(c.Unique),
	}
	if err := q.Check(); err != nil {
		return &usageError{err.Error(), hint(err)}
	}
	if c.Unique > 0 && c.Serve > 0 {
		return &usageError{"--serve assumes that every token is read once: it cannot be combined with --unique-tokens",
			"give one of them"}
	}
	f, name, err := c.open()
	if err != nil {
		return err
	}
	if n := newPoints(c.Fit, f); n > 0 {
		s.warn(fmt.Sprintf("%s has %s that its fit does not know; `%s` makes a new fit", c.Fit, units.Count(n, "point"),
			command("anneal", "scaling", "fit", c.Fit)))
	}
	m, err := f.Law.Answer(q)
	if err != nil {
		return asUsage(err)
	}
	var serving *scaling.Inference
	if c.Serve > 0 {
		i, err := f.Law.ForServing(m.Loss, float64(c.Serve))
		if err != nil {
			return asUsage(err)
		}
		serving = &i
	}
	asked := []scaling.Model{m}
	if serving != nil {
		asked = append(asked, serving.Model)
	}
	if err := s.draw(lab.ScalingChart(f, asked...), c.SVG); err != nil {
		return err
	}
	s.printf("\nby %s\n\n", name)
	intervals := s.printAnswer(f, q, m)
	if serving != nil {
		s.printServing(serving)
	}
	far := slices.MaxFunc(asked, func(a, b scaling.Model) int { return cmp.Compare(a.FLOPs, b.FLOPs) })
	if reach := f.Reach(); reach > 0 && far.FLOPs > 10*reach {
		leaves := "the law may be wrong so far away"
		if len(f.Resamples) > 0 {
			leaves = "the interval leaves out the error of the law itself so far away"
		}
		s.warn(fmt.Sprintf("%.0f times the compute of the largest point: %s", far.FLOPs/reach, leaves))
	}
	return s.emit(map[string]any{
		"fit": c.Fit, "law": f.Law, "params": m.Params, "tokens": m.Tokens, "flops": m.FLOPs, "loss": number(m.Loss),
		"tokens_per_param": number(m.Ratio()), "epochs": q.Epochs(m), "intervals": intervals, "serving": serving,
		"confidence": scaling.Confidence,
	})
}

// printAnswer prints a model with the interval of each number, and returns the intervals for scripts.
func (s *session) printAnswer(f *scaling.Fit, q scaling.Question, m scaling.Model) map[string]any {
	intervals := map[string]any{}
	for _, row := range []struct {
		name, key string
		of        func(scaling.Model) float64
		form      func(float64) string
	}{
		{"parameters", "params", func(m scaling.Model) float64 { return m.Params }, short},
		{"training tokens", "tokens", func(m scaling.Model) float64 { return m.Tokens }, short},
		{"tokens/parameter", "tokens_per_param", scaling.Model.Ratio, format("%.3g")},
		{"training FLOPs", "flops", func(m scaling.Model) float64 { return m.FLOPs }, flops},
		{"loss (nats/token)", "loss", func(m scaling.Model) float64 { return m.Loss }, format("%.3f")},
	} {
		in := f.Interval(func(l scaling.Law) float64 {
			m, err := l.Answer(q)
			if err != nil && !errors.Is(err, scaling.ErrTooSmall) { // a loss out of reach needs infinite compute
				endless := math.Inf(1)
				m = scaling.Model{Params: cmp.Or(q.Params, endless), Tokens: cmp.Or(q.Tokens, endless), FLOPs: endless,
					Loss: q.Loss}
			}
			return row.of(m)
		})
		intervals[row.key] = intervalJSON(in)
		text := ""
		if in != nil && (in.High > in.Low*(1+1e-9) || math.IsInf(in.High, 1)) {
			text = fmt.Sprintf("%.0f %% interval %s", 100*scaling.Confidence, within(in, row.form))
		}
		s.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-20s  %-10s  %s", row.name, row.form(row.of(m)), text), " "))
	}
	if worth := f.Law.EffectiveParams(m.Params, q.Unique); q.Unique > 0 && worth < 0.999*m.Params {
		s.printf("%-20s  %-10s  the most that %s unique tokens can fill are %s\n", "worth of parameters", short(worth),
			short(q.Unique), short(f.Law.OptimumOfTokens(q.Unique).Params))
	}
	if epochs := q.Epochs(m); epochs > 1 {
		s.printf("%-20s  %-10.3g  of %s unique tokens, worth as much as %s new ones\n", "epochs", epochs,
			short(q.Unique), short(scaling.EffectiveTokens(m.Tokens, q.Unique)))
	}
	return intervals
}

// printServing compares the model that is cheapest to train and serve with the compute-optimal one.
func (s *session) printServing(i *scaling.Inference) {
	s.printf("\nto serve %s tokens at a loss of %.3f\n\n%-20s  %-16s  %s\n", short(i.Served), i.Loss, "",
		"compute-optimal", "cheapest to train and serve")
	serving := func(m scaling.Model) float64 { return scaling.Serving(m.Params, i.Served) }
	best := i.Chinchilla
	for _, row := range []struct {
		name string
		a, b string
	}{
		{"parameters", short(best.Params), short(i.Params)},
		{"training tokens", short(best.Tokens), short(i.Tokens)},
		{"tokens/parameter", fmt.Sprintf("%.3g", best.Ratio()), fmt.Sprintf("%.3g", i.Ratio())},
		{"training FLOPs", flops(best.FLOPs), fmt.Sprintf("%s (%+.0f %%)", flops(i.FLOPs), 100*(i.FLOPs/best.FLOPs-1))},
		{"serving FLOPs", flops(serving(best)),
			fmt.Sprintf("%s (%+.0f %%)", flops(serving(i.Model)), 100*(serving(i.Model)/serving(best)-1))},
		{"together", flops(i.ChinchillaTotal),
			fmt.Sprintf("%s (%+.0f %%)", flops(i.Total), 100*(i.Total/i.ChinchillaTotal-1))},
	} {
		s.printf("%-20s  %-16s  %s\n", row.name, row.a, row.b)
	}
	s.printf("a compute-optimal model with these training FLOPs would have a loss lower by %.4f nats/token\n",
		i.Penalty)
}
