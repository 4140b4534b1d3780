package train

import (
	"math"
	"math/rand/v2"
	"testing"
)

// GNS-1: four gradients of batches of 8, (1,2), (3,−1), (0,1) and (2,4), have mean square 9 and a mean of square 4.5.
func TestNoiseScaleGolden(t *testing.T) {
	var s NoiseScale
	if !math.IsNaN(s.Tokens()) {
		t.Errorf("before a measurement the noise scale is %v, want none", s.Tokens())
	}
	s.Add(9, 4.5, 8, 32)
	signal, noise := s.Signal/(1-noiseMemory), s.Noise/(1-noiseMemory)
	if math.Abs(signal-3) > 1e-12 || math.Abs(noise-48) > 1e-12 || math.Abs(s.Tokens()-16) > 1e-12 {
		t.Errorf("|G|² %v, tr Σ %v, B %v; want 3, 48 and 16", signal, noise, s.Tokens())
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
		var s NoiseScale
		s.Add(small, large, b, b*micros)
		signal, noise = signal+s.Signal/(1-noiseMemory)/rounds, noise+s.Noise/(1-noiseMemory)/rounds
	}
	if math.Abs(noise/trace-1) > 0.05 || math.Abs(signal/square-1) > 0.05 {
		t.Errorf("tr Σ estimated as %.3f, is %.3f; |µ|² as %.3f, is %.3f (seed 3, 4)", noise, trace, signal, square)
	}
}
