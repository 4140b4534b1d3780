package train

import (
	"math"
	"slices"

	"anneal/device"
	"anneal/parallel"
	"anneal/tensor"
)

// NoiseScale estimates the gradient noise scale B = tr Σ / |G|², in tokens (McCandlish et al. 2018, arXiv 1812.06162,
// appendix A.1). Σ is the covariance of one token's gradient, G the mean. Steps much smaller than B average out
// little of the noise, and doubling the batch nearly halves the number of steps; steps much larger than B waste
// tokens. A step sums the gradients S_k of its blocks, of mₖ tokens each: micro-batches, or parallel.sum_block of
// them. Since E|S_k|² = mₖ²·|G|² + mₖ·tr Σ, and likewise for their sum S over n = Σ mₖ tokens,
//
//	|G|² ≈ (|S|² − Σ|S_k|²) / (n² − Σmₖ²),  tr Σ ≈ (n²·Σ|S_k|² − Σmₖ²·|S|²) / (n·(n² − Σmₖ²))
//
// Both are unbiased for blocks of any sizes. With equal sizes they are the estimators of the paper, with the mean of
// |S_k|² over all blocks. They are noisy, so a running mean is kept of each, and B is the ratio of the means. Memory:
// on one rank 4 bytes per parameter, to hold the gradient of each block before it is added; none on several ranks,
// which have these terms anyway. Time: two more passes over the gradients per block. It is off by default. Not for
// steps of one block, where there is nothing to compare.
type NoiseScale struct {
	Noise  float64 `json:"noise"`  // running mean of tr Σ
	Signal float64 `json:"signal"` // running mean of |G|²
}

// noiseMemory is the weight of the past in the running means, which average over about fifty measurements.
const noiseMemory = 0.98

// Add adds a step: Σ|S_k|² and Σmₖ² over its blocks, |S|² and n of the whole.
func (s *NoiseScale) Add(blocks, blockSquares, whole, n float64) {
	between := n*n - blockSquares
	s.Signal = noiseMemory*s.Signal + (1-noiseMemory)*(whole-blocks)/between
	s.Noise = noiseMemory*s.Noise + (1-noiseMemory)*(n*n*blocks-blockSquares*whole)/(n*between)
}

// Tokens returns the estimate; NaN before the first measurement. The initial bias of both means cancels.
func (s NoiseScale) Tokens() float64 {
	if s.Signal <= 0 || s.Noise < 0 {
		return math.NaN()
	}
	return s.Noise / s.Signal
}

// measuresNoise reports whether the current pass of a step measures the gradient noise.
func (t *Trainer) measuresNoise() bool {
	every := t.cfg.Train.NoiseScaleEvery
	return every > 0 && (t.progress.Step+1)%every == 0 && !t.sampled()
}

// measureNoise adds a step with this norm of the mean gradient to the estimate and returns the estimate; NaN for
// steps that do not measure it.
func (t *Trainer) measureNoise(sums batchSums, norm float64) float64 {
	n := float64(sums.targets)
	if sums.blockTargets == 0 || sums.blockTargets == n*n {
		return math.NaN()
	}
	t.progress.Noise.Add(sums.blocks, sums.blockTargets, norm*norm*n*n, n)
	return t.progress.Noise.Tokens()
}

// blockSums holds sums of squares of the gradients of a step's blocks. There is one sum for each stretch
// (device.Stretch) that this rank sees, over all blocks in order, so a sum does not depend on which rank computes it.
type blockSums struct {
	sums   []float64
	each   []float64       // of a block
	pieces []tensor.Tensor // on a single rank: parameters, or their parts
}

// reset forgets the blocks of the step before.
func (b *blockSums) reset() { b.sums = b.sums[:0] }

// room adds n sums from number at on, all 0.
func (b *blockSums) room(at, n int) []float64 {
	if was := len(b.sums); was < at+n {
		b.sums = slices.Grow(b.sums, at+n-was)[:at+n]
		clear(b.sums[was:])
	}
	return b.sums[at : at+n]
}

// add adds the squares of tensors, whose stretches begin at number at.
func (b *blockSums) add(dev device.Device, at int, list ...*tensor.Tensor) {
	n := 0
	for _, x := range list {
		n += device.Stretches(x)
	}
	b.each = slices.Grow(b.each[:0], n)[:n]
	dev.SquareSums(b.each, list...)
	for i, x := range b.room(at, n) {
		b.sums[at+i] = x + b.each[i]
	}
}

// measureBlock adds the squares of a block's gradient, on a single rank. Parameters that the block does not use add
// nothing.
func (t *Trainer) measureBlock() {
	if !t.measuresNoise() {
		return
	}
	b, at := &t.blocks, 0
	for i, p := range t.model.Params() {
		if p.Frozen {
			continue
		}
		t.normed, b.pieces = t.normed[:0], b.pieces[:0]
		for from, k := 0, 0; k < max(len(t.parts[i]), 1); k++ {
			to := p.Grad.Dim(0)
			if len(t.parts[i]) > 0 {
				to = from + t.parts[i][k].Dim(0)
			}
			b.pieces = append(b.pieces, p.Grad.Slice(from, to))
			from = to
		}
		n := 0
		for k := range b.pieces {
			t.normed = append(t.normed, &b.pieces[k])
			n += device.Stretches(&b.pieces[k])
		}
		if b.room(at, n); p.HasGrad() {
			b.add(t.dev, at, t.normed...)
		}
		at += n
	}
}

// measureTerms adds the squares of the terms of a piece: the gradients of a round's blocks, on one of several ranks.
func (t *Trainer) measureTerms(o *parallel.Owned, terms []*tensor.Tensor) {
	if !t.measuresNoise() || o.Counted == 0 {
		return
	}
	for _, x := range terms {
		counted := x.Slice(0, o.Counted)
		t.blocks.add(t.dev, o.Stretch, &counted)
	}
}

// squaresOfBlocks returns Σ|S_k|² on a single rank, including the loss scale of fp16.
func (t *Trainer) squaresOfBlocks() (total float64) {
	rest := t.blocks.sums
	for i, p := range t.model.Params() {
		if p.Frozen {
			continue
		}
		for k := range max(len(t.parts[i]), 1) {
			n := device.Stretches(&p.Grad)
			if len(t.parts[i]) > 0 {
				n = device.Stretches(&t.parts[i][k])
			}
			sum := 0.0
			for _, x := range rest[:n] {
				sum += x
			}
			total, rest = total+sum, rest[n:]
		}
	}
	return total
}
