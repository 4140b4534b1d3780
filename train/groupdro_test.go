package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tensor"
	"anneal/train/traintest"
)

// α = (0.5, 0.3, 0.2) with excess losses λ = (0.1, 0.4, 0), η = 1 and c = 10⁻³, by hand.
func TestGroupDROUpdatesByTheFormula(t *testing.T) {
	d, next := newDomainWeights(3), newDomainWeights(3)
	copy(d.Alpha, []float64{0.5, 0.3, 0.2})
	copy(next.Excess, []float64{0.1, 0.4, 0})
	d.update(&next, 1, 1e-3)
	for i, want := range []float64{0.460309797728, 0.372875302378, 0.166814899894} {
		if got := next.Alpha[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("domain %d: weight %.12f, want %.12f", i, got, want)
		}
	}
}

// Over 50 steps from given losses of tokens, excess losses, weights and their mean are those of the authors'
// arithmetic in PyTorch.
func TestGroupDROMatchesPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/groupdro.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Rate, Smoothing  float64
		Proxy, Reference [][][]float64 // [step][domain][token]
		Excess, Alpha    [][]float64
		Mean             []float64
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	arena, err := tensor.NewArena("losses", 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	reference := arena.New(tensor.F64, 4)
	d, next := newDomainWeights(3), newDomainWeights(3)
	same := func(what string, step int, got, want []float64) {
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Fatalf("step %d, domain %d: %s %.15g, want %.15g", step, i, what, got[i], want[i])
			}
		}
	}
	for step := range want.Alpha {
		for i, losses := range want.Proxy[step] {
			copy(reference.F64(), want.Reference[step][i])
			next.Excess[i] = excess(losses, &reference) / float64(len(losses))
		}
		d.update(&next, want.Rate, want.Smoothing)
		d, next = next, d
		same("excess", step, d.Excess, want.Excess[step])
		same("weight", step, d.Alpha, want.Alpha[step])
	}
	same("mean", len(want.Alpha), d.mean(len(want.Alpha)), want.Mean)
}

// Micro-batches hold the rows of one source each, packed as data.packing says, in the source's own order, and what is
// counted of each source is what was read. What would make weights say something else is refused.
func TestTurnsReadEachSourceInItsOrder(t *testing.T) {
	cfg := traintest.DomainConfig(traintest.Domains(t), 4)
	for _, packing := range []string{"concat", "best_fit"} {
		cfg.Data.Packing = packing
		c, err := prepare.OpenCorpus(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := errors.Join(c.OpenTraining(cfg), c.TakeTurns(2)); err != nil {
			t.Fatal(err)
		}
		reads, counts := c.Train.(interface {
			dataset.Source
			ManySources
		}), make([]uint64, 3)
		var got, want dataset.Batch
		for k := range uint64(60) {
			if drawn := reads.Drawn(k); !slices.Equal(drawn, counts) {
				t.Fatalf("%s: of the first %d samples %v come from the sources, Drawn says %v",
					packing, k, counts, drawn)
			}
			source, sample := reads.At(k)
			if source != int(k/2%3) || sample != counts[source] {
				t.Fatalf("%s: sample %d is number %d of source %d, want %d of %d",
					packing, k, sample, source, counts[source], k/2%3)
			}
			alone, err := c.Sources[source].Set.PackedLoader(dataset.Packing(packing), 32,
				reads.Loaders()[source].State(0).Seed)
			if err := errors.Join(err, alone.Batch(&want, sample, 1), reads.Batch(&got, k/2*2, 2)); err != nil {
				t.Fatal(err)
			}
			if at := int(k % 2 * 32); !slices.Equal(got.Tokens[at:at+32], want.Tokens) ||
				!slices.Equal(got.Targets[at:at+32], want.Targets) {
				t.Fatalf("%s: sample %d is not row %d of source %d", packing, k, sample, source)
			}
			counts[source]++
		}
	}
	for key, set := range map[string]func(*config.Config){
		"data.order":       func(c *config.Config) { traintest.Override(c, "data.order=first length over 10%") },
		"data.skip":        func(c *config.Config) { c.Data.Skip = dataset.SkipList{{From: 3, To: 5}} },
		"train.batch_ramp": func(c *config.Config) { traintest.Override(c, "train.batch_ramp=128 over 1K tokens") },
	} {
		c := cfg.Clone()
		set(c)
		var p config.Problem
		if err := (GroupDRO{Rate: 1, Smoothing: 1e-3}).Check(c); !errors.As(err, &p) || p.Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// With weights α the gradient is Σ αᵢ·∇(mean loss of domain i): those of the single domains, added up.
func TestGroupDROWeighsGradients(t *testing.T) {
	proxy := traintest.DomainConfig(traintest.Domains(t), 2)
	gradients := func(alpha []float64) (all [][]float64) {
		cfg := proxy.Clone()
		cfg.Precision = "fp64"
		c, err := prepare.OpenCorpus(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := errors.Join(c.OpenTraining(cfg), c.TakeTurns(cfg.Train.MicroBatch)); err != nil {
			t.Fatal(err)
		}
		tr := trainerOf(t, cfg, 1)
		tr.accum = 3
		tr.robust = &robust{factors: alpha}
		if _, err := tr.gradient(context.Background(), c.Train, 0); err != nil {
			t.Fatal(err)
		}
		for _, p := range tr.Model().Params() {
			all = append(all, slices.Clone(p.Grad.F64()))
		}
		return all
	}
	alpha := []float64{0.7, 0.2, 0.1}
	rest, even := gradients(alpha), gradients([]float64{1, 1, 1})
	for i, a := range alpha {
		more := []float64{1, 1, 1}
		more[i] = 2
		for p, g := range gradients(more) {
			for j, x := range g {
				rest[p][j] -= a * (x - even[p][j]) // the domain's own gradient
			}
		}
	}
	for p, g := range rest {
		for j, rest := range g {
			if math.Abs(rest) > 1e-10 {
				t.Fatalf("parameter %d, element %d: the weighted gradient is off the sum of the domains' by %g",
					p, j, rest)
			}
		}
	}
}
