package train

import "math"

// NoiseScale estimates the gradient noise scale B = tr Σ / |G|², in tokens (McCandlish et al. 2018, arXiv 1812.06162,
// appendix A.1). Σ is the covariance of one token's gradient, G the mean. Steps much smaller than B average out
// little of the noise, and doubling the batch nearly halves the number of steps; steps much larger than B waste
// tokens. From the squared gradient norms of a micro-batch of b tokens and of the whole step of n:
//
//	|G|² ≈ (n·|g_n|² − b·|g_b|²) / (n − b),  tr Σ ≈ (|g_b|² − |g_n|²) / (1/b − 1/n)
//
// Both are unbiased and noisy, so each has a running mean, and B is their ratio. The first micro-batch's gradient is
// measured before the others are added. Memory: none. Time: one more pass over the gradients, so it is off by
// default. Not for steps of one micro-batch, where there is nothing to compare.
type NoiseScale struct {
	Noise  float64 `json:"noise"`  // running mean of tr Σ
	Signal float64 `json:"signal"` // running mean of |G|²
}

// noiseMemory is the weight of the past in the running means, which average over about fifty measurements.
const noiseMemory = 0.98

// Add adds the squared norms of the mean gradients of b tokens and of n > b.
func (s *NoiseScale) Add(small, large, b, n float64) {
	s.Signal = noiseMemory*s.Signal + (1-noiseMemory)*(n*large-b*small)/(n-b)
	s.Noise = noiseMemory*s.Noise + (1-noiseMemory)*(small-large)/(1/b-1/n)
}

// Tokens returns the estimate; NaN before the first measurement. The initial bias of both means cancels.
func (s NoiseScale) Tokens() float64 {
	if s.Signal <= 0 || s.Noise < 0 {
		return math.NaN()
	}
	return s.Noise / s.Signal
}

// measuresNoise reports whether the next step measures the gradient noise.
func (t *Trainer) measuresNoise() bool {
	every := t.cfg.Train.NoiseScaleEvery
	return every > 0 && (t.progress.Step+1)%every == 0
}

// measureNoise adds a step with this norm of the mean gradient to the estimate and returns the estimate; NaN for
// steps that do not measure it.
func (t *Trainer) measureNoise(sums batchSums, norm float64) float64 {
	first, all := float64(sums.firstTargets), float64(sums.targets)
	if first == 0 || first == all {
		return math.NaN()
	}
	t.progress.Noise.Add(sums.first/(first*first), norm*norm, first, all)
	return t.progress.Noise.Tokens()
}
