package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/train/traintest"
)

// GNS-1: four gradients of batches of 8, (1,2), (3,−1), (0,1) and (2,4), have mean square 9 and a mean of square 4.5.
func TestNoiseScaleGolden(t *testing.T) {
	var s NoiseScale
	if !math.IsNaN(s.Tokens()) {
		t.Errorf("before a measurement the noise scale is %v, want none", s.Tokens())
	}
	s.Add(64*36, 4*64, 32*32*4.5, 32)
	signal, noise := s.Signal/(1-noiseMemory), s.Noise/(1-noiseMemory)
	if math.Abs(signal-3) > 1e-12 || math.Abs(noise-48) > 1e-12 || math.Abs(s.Tokens()-16) > 1e-12 {
		t.Errorf("|G|² %v, tr Σ %v, B %v; want 3, 48 and 16", signal, noise, s.Tokens())
	}
}

// GNS-2: of gradients drawn from N(µ, Σ) the mean estimates come within 2 % of tr Σ and |µ|², for blocks of one size or
// of several. With all blocks they scatter less than with the first one alone.
func TestNoiseScaleOfSimulatedGradients(t *testing.T) {
	const dim, rounds = 20, 4000
	r := rand.New(rand.NewPCG(3, 4))
	mu, sigma := make([]float64, dim), make([]float64, dim)
	trace, square := 0.0, 0.0
	for i := range dim {
		mu[i], sigma[i] = r.NormFloat64(), 0.5+3*r.Float64()
		trace, square = trace+sigma[i]*sigma[i], square+mu[i]*mu[i]
	}
	for _, sizes := range [][]float64{{4, 4, 4, 4, 4, 4, 4, 4}, {1, 9, 4, 2, 8, 4, 0, 4}} {
		signal, noise, variance, alone := 0.0, 0.0, 0.0, 0.0
		for range rounds {
			sum, blocks, squares, n, first, whole := make([]float64, dim), 0.0, 0.0, 0.0, 0.0, 0.0
			for k, m := range sizes {
				for i := range dim { // the sum of m draws
					g := m*mu[i] + sigma[i]*math.Sqrt(m)*r.NormFloat64()
					sum[i], blocks = sum[i]+g, blocks+g*g
					if k == 0 {
						first += g * g
					}
				}
				n, squares = n+m, squares+m*m
			}
			for _, g := range sum {
				whole += g * g
			}
			var s NoiseScale
			s.Add(blocks, squares, whole, n)
			signal, noise = signal+s.Signal/(1-noiseMemory)/rounds, noise+s.Noise/(1-noiseMemory)/rounds
			off := s.Noise/(1-noiseMemory) - trace
			variance += off * off / rounds
			b := sizes[0]
			off = (first/(b*b)-whole/(n*n))/(1/b-1/n) - trace
			alone += off * off / rounds
		}
		if math.Abs(noise/trace-1) > 0.02 || math.Abs(signal/square-1) > 0.02 {
			t.Errorf("%v: tr Σ estimated as %.3f, is %.3f; |µ|² as %.3f, is %.3f (seed 3, 4)", sizes, noise, trace,
				signal, square)
		}
		if variance > alone/3 {
			t.Errorf("%v: the estimate of tr Σ has the variance %.3g, with the first block alone %.3g", sizes, variance,
				alone)
		}
	}
}

// What a step measures are the gradients that its blocks have alone: those of steps of one block each.
func TestNoiseScaleIsOfTheBlocksOfAStep(t *testing.T) {
	data := traintest.Data(t)
	for _, set := range [][]string{
		nil, {"parallel.sum_block=3"}, {"optimizer.name=muon"}, {"precision=fp16"}, {"model.tie_embeddings=false"},
	} {
		with := func(tokens string, more ...string) *Trainer {
			cfg := smallConfig(t, data, append(append([]string{
				"train.micro_batch=2", "train.clip=0", "train.batch_tokens=" + tokens}, more...), set...)...)
			cfg.Model.Vocab = 300
			dev := cpu.NewTier(isa.Generic, 1)
			tr, err := New(cfg, dev)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tr.Close(); dev.Close() })
			return tr
		}
		step := func(tr *Trainer) Event {
			e, err := tr.Step(context.Background(), dataset.NewRandom(300, 32, 5))
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		all := with("448", "train.noise_scale_every=1") // 7 micro-batches
		whole := step(all)
		size := all.cfg.Parallel.SumBlock
		var want NoiseScale
		blocks, squares, n := 0.0, 0.0, 0.0
		for first := 0; first < 7; first += size {
			m := min(size, 7-first)
			one := with(fmt.Sprint(64 * m))
			one.progress.Sample = uint64(2 * first)
			e := step(one)
			targets := float64(e.Targets)
			blocks += math.Pow(e.GradNorm*targets, 2)
			n, squares = n+targets, squares+targets*targets
		}
		want.Add(blocks, squares, math.Pow(whole.GradNorm*n, 2), n)
		got := all.progress.Noise
		if math.Abs(got.Noise/want.Noise-1) > 1e-5 || math.Abs(got.Signal/want.Signal-1) > 1e-3 {
			t.Errorf("%v: measured %+v, want %+v", set, got, want)
		}
	}
}
