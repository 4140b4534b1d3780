package precision

import (
	"math"
	"slices"

	"anneal/autograd"
	"anneal/device"
	"anneal/tensor"
)

// FP8 is a recipe for the scales of FP8 operands. The hidden matrices multiply in E4M3 forward and E5M2 for gradients
// (see autograd.FP8); embeddings, head, norms, attention and the residual stream are those of policy bf16. A scale
// maps the largest magnitude of a tensor, amax, to the largest number of its format, MAX (448 and 57344):
//
//	current   scale = MAX / amax of the tensor itself: one more pass over it before it is quantised
//	delayed   scale = MAX / max(amax of the last History steps) / 2^Margin, set at the end of a step for the next
//
// Delayed scaling follows Transformer Engine: the history shifts once per step, and an amax that is 0 or not finite
// leaves the scale unchanged; the first step has scale 1. It keeps 4·(1+History) bytes for each of the three operands
// of a layer. Current scaling keeps nothing, never clips, and is the default. On CPUs FP8 is emulated: it rounds
// exactly, but is slower than bf16. Use it to study the effect of FP8 on a model, not to train faster.
//
// With Blocks every block of an operand has a scale of its own, a power of two, and all operands are E4M3
// (fp8blocks.go).
type FP8 struct {
	Delayed         bool
	History, Margin int             // of delayed scaling: 1024 and 0 by default
	Blocks          autograd.Blocks // zero for one scale per tensor
	Attention       bool            // whether attention has FP8 operands, too (autograd.QuantizeHeads)
}

// The largest numbers of the formats.
const (
	maxE4M3 = 448
	maxE5M2 = 57344
)

// New returns the scales of one layer. Their state is in a, or in host memory if the host cannot access a.
func (r *FP8) New(a *tensor.Arena) *autograd.FP8 {
	if r.Blocks.Long > 0 {
		return &autograd.FP8{Blocks: r.Blocks}
	}
	if !r.Delayed {
		return &autograd.FP8{X: current{maxE4M3}, W: current{maxE4M3}, DY: current{maxE5M2}}
	}
	of := func(max float64) *Delayed {
		s := &Delayed{max: max, margin: r.Margin, State: a.New(tensor.F32, 1+r.History)}
		if s.State.Apart() { // the host computes the scales
			s.State = *tensor.Of(make([]float32, 1+r.History))
		}
		if a.Backed() {
			s.state = s.State.F32()
			s.state[0] = 1
		}
		return s
	}
	return &autograd.FP8{X: of(maxE4M3), W: of(maxE4M3), DY: of(maxE5M2)}
}

// current is a Scaler that uses the tensor itself.
type current struct{ max float64 }

// Scale implements autograd.Scaler. A tensor of zeros has scale max/1e-12. A tensor with a non-finite element has
// scale 1, and quantises to NaN.
func (c current) Scale(d device.Device, x *tensor.Tensor, _ bool) float64 {
	amax := d.MaxAbs(x)
	if math.IsNaN(amax) || math.IsInf(amax, 0) {
		return 1
	}
	return float64(float32(c.max / max(amax, 1e-12)))
}

// Delayed is a Scaler that uses the history of a tensor.
type Delayed struct {
	max    float64
	margin int
	// State [1+History] F32: the scale, the amax of this step so far, and those of earlier steps, newest first.
	State tensor.Tensor
	state []float32 // elements of State; nil if only memory is measured
	begun float32   // the amax when the step began
}

// Scale implements autograd.Scaler.
func (s *Delayed) Scale(d device.Device, x *tensor.Tensor, record bool) float64 {
	if s.state == nil {
		return 1
	}
	if record {
		s.Observe(float32(d.MaxAbs(x)))
	}
	return float64(s.state[0])
}

// Observe counts a magnitude, which may be NaN, as one of this step.
func (s *Delayed) Observe(amax float32) {
	if amax != amax || amax > s.state[1] {
		s.state[1] = amax
	}
}

// Amax returns the largest magnitude of this step so far.
func (s *Delayed) Amax() float32 { return s.state[1] }

// BeginStep remembers the amax of a step at its beginning. It is 0 unless a pass followed the last update, as Sophia's
// does.
func (s *Delayed) BeginStep() { s.begun = s.state[1] }

// UndoStep forgets the magnitudes observed since BeginStep.
func (s *Delayed) UndoStep() { s.state[1] = s.begun }

// EndStep sets the scale of the next step. It drops a non-finite amax, whose step was skipped.
func (s *Delayed) EndStep() {
	history := s.state[1:]
	amax := slices.Max(history) // NaN if any element is
	if amax > 0 && amax <= math.MaxFloat32 {
		scale := s.max / float64(amax) / math.Exp2(float64(s.margin))
		s.state[0] = float32(min(scale, math.MaxFloat32))
	}
	if !(history[0] <= math.MaxFloat32) {
		history[0] = 0
	}
	copy(history[1:], history)
	history[0] = 0
}
