package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"anneal/chart"
	"anneal/internal/nanjson"
)

// Model collapse (Shumailov et al. 2024, Nature 631): every generation learns from samples of the one before. Two
// models are simple enough for an exact theory: a Gaussian and a table of frequencies. Language models are in
// lineage.go. New data either replaces that of earlier generations or accumulates (Gerstgrasser et al. 2024, arXiv
// 2404.01413).

// A Mode says what a generation learns from, besides samples of the previous generation.
type Mode string

// The modes. Mix is a tenth of real data in every generation.
const (
	Replace    Mode = "replace"
	Accumulate Mode = "accumulate"
	Mix        Mode = "mix"
)

// mixedIn is the share of real data in Mix.
const mixedIn = 0.1

// A Generation is a measurement after a generation, over many trials.
type Generation struct {
	Generation int     `json:"generation"`
	Mean       float64 `json:"mean"`
	Error      float64 `json:"standard_error"`
	Theory     float64 `json:"theory,omitempty"` // NaN if there is no theory
}

// MarshalJSON implements json.Marshaler.
func (g Generation) MarshalJSON() ([]byte, error) { return nanjson.Marshal(g) }

// sigmas returns the distance of the mean from theory in standard errors.
func (g Generation) sigmas() float64 { return math.Abs(g.Mean-g.Theory) / g.Error }

// gaussians fits a Gaussian to m samples of the one before by maximum likelihood, over and over, and returns its
// variance after each generation, 1 at first. With Replace its expectation is (1 − 1/m)^t.
func gaussians(mode Mode, m, generations, trials int, seed uint64) []Generation {
	list := make([]Generation, generations)
	sums, squares := make([]float64, generations), make([]float64, generations)
	for trial := range trials {
		r := rand.New(rand.NewPCG(seed, uint64(trial)))
		var data []float64
		mean, variance := 0.0, 1.0
		for t := range generations {
			if mode == Replace {
				data = data[:0]
			}
			for range m {
				data = append(data, mean+math.Sqrt(variance)*r.NormFloat64())
			}
			mean, variance = moments(data)
			sums[t] += variance
			squares[t] += variance * variance
		}
	}
	for t := range list {
		theory := math.NaN()
		if mode == Replace {
			theory = math.Pow(1-1/float64(m), float64(t+1))
		}
		list[t] = generation(t+1, sums[t], squares[t], trials, theory)
	}
	return list
}

// moments returns the mean and the variance of numbers, by maximum likelihood.
func moments(list []float64) (mean, variance float64) {
	for _, x := range list {
		mean += x
	}
	mean /= float64(len(list))
	for _, x := range list {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(list))
}

// generation returns a measurement from its sum and its sum of squares over trials.
func generation(t int, sum, squares float64, trials int, theory float64) Generation {
	n := float64(trials)
	mean := sum / n
	return Generation{t, mean, math.Sqrt(max(squares/n-mean*mean, 0) / (n - 1)), theory}
}

// A Frequencies is the course of a table of word frequencies.
type Frequencies struct {
	Mode    Mode         `json:"mode"`
	Support []Generation `json:"support"` // number of words that still occur
	// the probability that two words differ: with Replace (1 − 1/m)^t of the first
	Diversity []Generation `json:"diversity"`
	Entropy   []Generation `json:"entropy_nats"`
}

// frequencies repeatedly draws m samples from the previous counts and counts the words. The first text has the given
// number of words, in which the word of rank r has a probability proportional to 1/r.
func frequencies(mode Mode, words, m, generations, trials int, seed uint64) Frequencies {
	real := zipf(words)
	sums, squares := make([][3]float64, generations), make([][3]float64, generations)
	for trial := range trials {
		r := rand.New(rand.NewPCG(seed, uint64(trial)))
		p, counts, all := real, make([]float64, words), 0.0
		for t := range generations {
			if mode != Accumulate {
				clear(counts)
				all = 0
			}
			fresh := m
			if mode == Mix && t > 0 {
				fresh = m - int(mixedIn*float64(m))
				sample(r, real, m-fresh, counts)
			}
			sample(r, p, fresh, counts)
			all += float64(m)
			p = make([]float64, words)
			for i, n := range counts {
				p[i] = n / all
			}
			for k, x := range measures(p) {
				sums[t][k] += x
				squares[t][k] += x * x
			}
		}
	}
	f := Frequencies{Mode: mode}
	first := measures(real)[1]
	seen := 0.0 // expected words in the first generation
	for _, p := range real {
		seen += 1 - math.Pow(1-p, float64(m))
	}
	for t := range generations {
		support, diversity := math.NaN(), math.NaN()
		if t == 0 {
			support = seen
		}
		if mode == Replace || t == 0 {
			diversity = first * math.Pow(1-1/float64(m), float64(t+1))
		}
		theory := [3]float64{support, diversity, math.NaN()}
		for k, list := range []*[]Generation{&f.Support, &f.Diversity, &f.Entropy} {
			*list = append(*list, generation(t+1, sums[t][k], squares[t][k], trials, theory[k]))
		}
	}
	return f
}

// zipf returns the probabilities of words of rank 1 to n.
func zipf(n int) []float64 {
	p, all := make([]float64, n), 0.0
	for i := range p {
		p[i] = 1 / float64(i+1)
		all += p[i]
	}
	for i := range p {
		p[i] /= all
	}
	return p
}

// sample adds to counts those of n words drawn by p.
func sample(r *rand.Rand, p []float64, n int, counts []float64) {
	upTo, sum := make([]float64, len(p)), 0.0
	for i, x := range p {
		sum += x
		upTo[i] = sum
	}
	for range n {
		i, _ := slices.BinarySearch(upTo, r.Float64()*sum)
		counts[min(i, len(p)-1)]++
	}
}

// measures returns the number of words with a probability above 0, the probability that two words differ, and the
// entropy in nats.
func measures(p []float64) [3]float64 {
	support, same, entropy := 0.0, 0.0, 0.0
	for _, x := range p {
		if x > 0 {
			support++
			same += x * x
			entropy -= x * math.Log(x)
		}
	}
	return [3]float64{support, 1 - same, entropy}
}

// CollapseOptions are the options of Collapse.
type CollapseOptions struct {
	Seed   int `json:"seed"`
	Trials int `json:"trials"`
	Steps  int `json:"steps"` // of each language model; 0: none are trained
}

// The sizes of the study: samples of a generation, and generations.
const (
	gaussianSamples, gaussianGenerations = 20, 30
	textWords, textSamples               = 1000, 2000
	textGenerations                      = 10
)

// A Collapsed is the result of Collapse.
type Collapsed struct {
	Gaussian    map[Mode][]Generation `json:"gaussian_variance"`
	Frequencies []Frequencies         `json:"frequencies"`
	Lineages    []Lineage             `json:"language_models,omitempty"` // replaced, mixed, accumulated
}

// Collapse lets generations learn from each other.
func Collapse(ctx context.Context, d *Dir, o CollapseOptions) (*Report, *Collapsed, error) {
	c := &Collapsed{Gaussian: map[Mode][]Generation{}}
	for _, mode := range []Mode{Replace, Accumulate} {
		c.Gaussian[mode] = gaussians(mode, gaussianSamples, gaussianGenerations, o.Trials, uint64(o.Seed))
	}
	for _, mode := range []Mode{Replace, Mix, Accumulate} {
		c.Frequencies = append(c.Frequencies,
			frequencies(mode, textWords, textSamples, textGenerations, max(o.Trials/10, 2), uint64(o.Seed)))
	}
	r := &Report{
		Study: "collapse", Seen: c.seen(), Figures: map[string]any{"models": c},
		Charts:    []*chart.Chart{c.varianceChart(), c.supportChart()},
		Headlines: []Headline{{"farthest from theory", c.offTheory(), "standard errors"}},
	}
	if o.Steps > 0 {
		var err error
		if c.Lineages, err = breed(ctx, d, uint64(o.Seed), o.Steps); err != nil {
			return nil, nil, err
		}
		r.Seen += " " + lineagesSeen(c.Lineages)
		r.Charts = append(r.Charts, lineageChart(c.Lineages))
		r.Headlines = append(r.Headlines, lineageHeadlines(c.Lineages)...)
	}
	return r, c, d.Write(r)
}

// off returns the largest distance of a generation from theory, in standard errors.
func off(lists ...[]Generation) (worst float64) {
	for _, list := range lists {
		for _, g := range list {
			if !math.IsNaN(g.Theory) {
				worst = max(worst, g.sigmas())
			}
		}
	}
	return worst
}

// offTheory returns the largest distance of any figure from its theory, in standard errors.
func (c *Collapsed) offTheory() float64 {
	return off(c.Gaussian[Replace], c.Frequencies[0].Support, c.Frequencies[0].Diversity)
}

// seen describes the results of both models.
func (c *Collapsed) seen() string {
	last := func(list []Generation) Generation { return list[len(list)-1] }
	g, kept := last(c.Gaussian[Replace]), last(c.Gaussian[Accumulate])
	r, m, a := c.Frequencies[0], c.Frequencies[1], c.Frequencies[2]
	text := fmt.Sprintf("A Gaussian that is fitted to %d samples of the one before has %.2f of its variance after %d "+
		"generations; theory says %.2f. If the samples of all generations are kept it has %.2f. A text of %d words "+
		"drawn from the one before has %.0f different words at first and %.0f after %d generations, %.0f if a tenth "+
		"of each is real, and %.0f if all are kept. Nothing is off theory by more than %.1f standard errors.",
		gaussianSamples, g.Mean, g.Generation, g.Theory, kept.Mean, textSamples, r.Support[0].Mean,
		last(r.Support).Mean, last(r.Support).Generation, last(m.Support).Mean, last(a.Support).Mean,
		c.offTheory())
	if last(a.Support).Mean >= 0.95*a.Support[0].Mean && last(r.Support).Mean < 0.95*r.Support[0].Mean {
		text += " Collapse comes from throwing data away: where all are kept next to nothing is lost."
	}
	return text
}

// means returns the means of a measurement over generations.
func means(list []Generation, value func(Generation) float64) (x, y []float64) {
	for _, g := range list {
		x, y = append(x, float64(g.Generation)), append(y, value(g))
	}
	return x, y
}

func (c *Collapsed) varianceChart() *chart.Chart {
	picture := &chart.Chart{
		Title: "A Gaussian, fitted to samples of itself", X: chart.Axis{Label: "generation"},
		Y: chart.Axis{Label: "variance", Max: 1.05},
	}
	for _, s := range []struct {
		name  string
		mode  Mode
		value func(Generation) float64
		style chart.Style
	}{
		{"data replaced", Replace, func(g Generation) float64 { return g.Mean }, chart.Points},
		{"theory", Replace, func(g Generation) float64 { return g.Theory }, chart.Line},
		{"data accumulated", Accumulate, func(g Generation) float64 { return g.Mean }, chart.Both},
	} {
		x, y := means(c.Gaussian[s.mode], s.value)
		picture.Series = append(picture.Series, chart.Series{Name: s.name, X: x, Y: y, Style: s.style})
	}
	return picture
}

func (c *Collapsed) supportChart() *chart.Chart {
	picture := &chart.Chart{
		Title: "Different words of a text, written by the statistics of the one before",
		X:     chart.Axis{Label: "generation"}, Y: chart.Axis{Label: "different words"},
	}
	for _, f := range c.Frequencies {
		x, y := means(f.Support, func(g Generation) float64 { return g.Mean })
		picture.Series = append(picture.Series, chart.Series{Name: string(f.Mode), X: x, Y: y, Style: chart.Both})
	}
	return picture
}
