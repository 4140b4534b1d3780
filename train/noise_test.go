package train

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"anneal/dataset"
)

// GNS-1: four gradients of batches of 8, (1,2), (3,−1), (0,1) and (2,4), have mean square 9 and a mean of square 4.5.
func TestNoiseScaleGolden(t *testing.T) {
	var s noiseScale
	if !math.IsNaN(s.tokens()) {
		t.Errorf("before a measurement the noise scale is %v, want none", s.tokens())
	}
	s.Add(9, 4.5, 8, 32)
	signal, noise := s.Signal/(1-noiseMemory), s.Noise/(1-noiseMemory)
	if math.Abs(signal-3) > 1e-12 || math.Abs(noise-48) > 1e-12 || math.Abs(s.tokens()-16) > 1e-12 {
		t.Errorf("|G|² %v, tr Σ %v, B %v; want 3, 48 and 16", signal, noise, s.tokens())
	}
}

// GNS-2: of gradients drawn from N(µ, Σ) the mean estimates come within 5 % of tr Σ and |µ|².
func TestNoiseScaleOfSimulatedGradients(t *testing.T) {
	const dim, b, micros, rounds = 20, 4, 8, 4000
	r := rand.New(rand.NewPCG(3, 4))
	mu, sigma := make([]float64, dim), make([]float64, dim)
	trace, square := 0.0, 0.0
	for i := range dim {
		mu[i], sigma[i] = r.NormFloat64(), 0.5+3*r.Float64()
		trace, square = trace+sigma[i]*sigma[i], square+mu[i]*mu[i]
	}
	signal, noise := 0.0, 0.0
	for range rounds {
		mean, small := make([]float64, dim), 0.0
		for m := range micros {
			sum := 0.0
			for i := range dim { // the mean of b draws
				g := mu[i] + sigma[i]/math.Sqrt(b)*r.NormFloat64()
				mean[i], sum = mean[i]+g/micros, sum+g*g
			}
			if m == 0 {
				small = sum
			}
		}
		large := 0.0
		for _, g := range mean {
			large += g * g
		}
		var s noiseScale
		s.Add(small, large, b, b*micros)
		signal, noise = signal+s.Signal/(1-noiseMemory)/rounds, noise+s.Noise/(1-noiseMemory)/rounds
	}
	if math.Abs(noise/trace-1) > 0.05 || math.Abs(signal/square-1) > 0.05 {
		t.Errorf("tr Σ estimated as %.3f, is %.3f; |µ|² as %.3f, is %.3f (seed 3, 4)", noise, trace, signal, square)
	}
}

// The squared norm measured is that of a step of the first micro-batch alone, and measuring changes no bit of
// training.
func TestMeasuringNoiseChangesNothing(t *testing.T) {
	run := func(overrides ...string) (*Trainer, Event) {
		cfg := with(t, "random", append(overrides, "model.vocab=64", "precision=fp32")...)
		tr := trainerOf(t, cfg, 1)
		stats, err := tr.Step(context.Background(), dataset.NewRandom(64, cfg.Model.Context, 1))
		if err != nil {
			t.Fatal(err)
		}
		return tr, stats
	}
	plain, _ := run("train.micro_batch=2")
	measured, whole := run("train.micro_batch=2", "train.noise_scale_every=1")
	if hashes(plain) != hashes(measured) {
		t.Errorf("weights and state %v with the measurement, %v without", hashes(measured), hashes(plain))
	}
	_, first := run("train.micro_batch=2", "train.batch_tokens=64")
	var want noiseScale
	want.Add(first.GradNorm*first.GradNorm, whole.GradNorm*whole.GradNorm, 64, 256)
	if got := measured.Position().Noise; math.Abs(got.Noise/want.Noise-1) > 1e-9 || math.Abs(got.Signal/want.Signal-1) > 1e-9 {
		t.Errorf("measured %+v, from the norms of the first micro-batch alone and of the step %+v", got, want)
	}
	data, dir := testData(t), filepath.Join(t.TempDir(), "run")
	r := mustRun(t, Options{Config: with(t, data, "train.noise_scale_every=2", "train.steps=6"), Dir: dir})
	lines, reported := readMetrics(t, dir), 0
	for _, l := range lines {
		if v, ok := l["noise_scale_tokens"].(float64); ok {
			reported++
			if l["step"].(float64) == 6 && v != r.NoiseScale {
				t.Errorf("the last line reports %v tokens, the result %v", v, r.NoiseScale)
			}
		}
	}
	if reported != 3 {
		t.Errorf("%d of 6 steps report a noise scale, want 3: every second one", reported)
	}
}
