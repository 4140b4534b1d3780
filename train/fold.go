package train

import (
	"anneal/config"
	"anneal/device"
	"anneal/nn"
	"anneal/parallel"
	"anneal/precision"
	"anneal/tensor"
)

// fold is the order in which the gradients of a step's micro-batches are added: from left to right, in F32,
//
//	G = ((b₀ + b₁) + b₂) + …
//
// where each bₖ is computed from zero. So the bits of G depend only on the micro-batches, not on which rank computes
// which. bₖ is the gradient of micro-batch k or, with parallel.sum_block, the sum of that many micro-batches in their
// order. It is rounded to the format of parallel.wire even if it is not sent.
//
// Within a sum, the gradients of matrices add up in place, which gives the same bits (nn.Param.OnePass). The gradients
// of all other parameters are sums of pieces; from the second micro-batch on they are computed in separate memory and
// then added. If blocks have several micro-batches or are rounded, all their gradients are computed in separate memory
// from the second block on. A parameter that a micro-batch does not use is not touched.
//
// Memory: 4 bytes per element of tables and vectors if blocks are single micro-batches; 4 bytes per element of all
// parameters if blocks are larger, rounded or measured (noise.go); up to 2 MiB more with a format other than f32.
// Time: one pass over them for each micro-batch or block but the first.
type fold struct {
	blocks, micros parallel.Adding
	params         []*nn.Param
	size           int // micro-batches of a block
	rounder        *precision.Rounder
	measure        func() // called with each block's gradients before they are added; may be nil
}

// foldRecipe holds the settings that decide how gradients are folded.
type foldRecipe struct {
	micros int // the most micro-batches of a step
	block  int // parallel.sum_block
	wire   precision.Wire
	apart  bool // each block is computed in separate memory, to be measured
}

// plain reports whether each block is one micro-batch, not rounded, that adds up in place.
func (r foldRecipe) plain() bool { return r.block == 1 && r.wire == precision.WireF32 && !r.apart }

// endsBlock reports whether micro-batch i of n is the last one of a block of size.
func endsBlock(i, n, size int) bool { return (i+1)%size == 0 || i+1 == n }

// foldRecipeOf returns the recipe of a run.
func foldRecipeOf(cfg *config.Config) foldRecipe {
	return foldRecipe{
		stepMicros(cfg), cfg.Parallel.SumBlock, precision.Wire(cfg.Parallel.Wire), cfg.Train.NoiseScaleEvery > 0,
	}
}

// layoutFold allocates the memory of a fold in a.
func layoutFold(a *tensor.Arena, params []*nn.Param, r foldRecipe) fold {
	f := fold{params: params, size: r.block}
	longest := 0
	for _, p := range params {
		longest = max(longest, p.Grad.Len())
	}
	f.rounder = r.wire.NewRounder(a, longest, params[0].Grad.DType())
	if !r.plain() && r.micros > r.block {
		f.blocks = parallel.NewAdding(a, params, func(*nn.Param) bool { return true })
	}
	if r.micros > 1 && (r.plain() || r.block > 1) {
		f.micros = parallel.NewAdding(a, params, parallel.InPieces)
	}
	return f
}

// begin prepares the memory for the gradients of micro-batch i.
func (f *fold) begin(i int) {
	if i%f.size == 0 {
		f.blocks.Begin()
	}
	f.micros.Begin()
}

// end adds the gradients of micro-batch i of n to those before. key is the rounding key of the step.
func (f *fold) end(dev device.Device, i, n int, k precision.WireKey) {
	f.micros.End(dev)
	if !endsBlock(i, n, f.size) {
		return
	}
	k.Block = i / f.size
	for at, p := range f.params {
		if k.Param = at; p.HasGrad() {
			f.rounder.Round(dev, &p.Grad, k)
		}
	}
	if f.measure != nil {
		f.measure()
	}
	f.blocks.End(dev)
}
