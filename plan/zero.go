package plan

import (
	"fmt"

	"anneal/config"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// The stages of ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054) on D ranks, in bytes a parameter. V is a weight as it
// is updated, C as products read it, G its gradient, S its optimizer state; AdamW in bf16 has 4, 2, 4 and 8.
//
//	stage  weights  gradients  state  AdamW, bf16  sent by a rank in a step, times (D−1)/D
//	0      V        G          S      16           B·W gradients, G sums of gradients
//	1      C + V/D  G          S/D    6 + 12/D     B·W gradients, C weights
//	2      C + V/D  G/D        S/D    2 + 16/D     B·W gradients, C weights
//	3      V/D      G/D        S/D    16/D         B·W gradients, 2·M·C weights
//
// In a step a rank computes M micro-batches, and sends B sums of them in the format of the wire, which takes W bytes an
// element: to every rank what that owns. Stage 3 has the weights sent for every forward and every backward pass. Where
// C = V, stages 1 and 2 update the weights where products read them: they keep C alone. Beside these, a rank has room
// for gradients and weights on their way.

// Stages is the number of stages of ZeRO, with stage 0, which is plain data parallelism.
const Stages = 4

// A Stage is what a rank keeps and sends at a stage of ZeRO, in bytes: the mean over ranks.
type Stage struct {
	Zero          int     `json:"zero"`
	Weights       float64 `json:"weight_bytes"`
	Gradients     float64 `json:"gradient_bytes"`
	State         float64 `json:"state_bytes"`
	SentGradients float64 `json:"sent_gradient_bytes"` // in a step
	SentWeights   float64 `json:"sent_weight_bytes"`   // in a step
}

// Kept returns the bytes of weights, gradients and optimizer state.
func (s Stage) Kept() float64 { return s.Weights + s.Gradients + s.State }

// Sent returns the bytes that a rank sends in a step.
func (s Stage) Sent() float64 { return s.SentGradients + s.SentWeights }

// Ranks is how the ranks of a run share its model.
type Ranks struct {
	Count  int     `json:"count"`
	Zero   int     `json:"zero"`   // of the run
	Sums   int     `json:"sums"`   // of micro-batches that a rank sends in a step, at most
	Stages []Stage `json:"stages"` // all, to compare
}

// Remark says what would make ranks send less, if that is much: every sum is as large as the model.
func (r *Ranks) Remark() string {
	if r == nil || r.Sums < 2 {
		return ""
	}
	return fmt.Sprintf("a rank sends its gradient %d times a step: a larger train.micro_batch sends less, and so does "+
		"parallel.sum_block = %d, which changes bits", r.Sums, r.Sums)
}

// ranksOf returns how the ranks of a run share a model; nil for a rank alone.
func ranksOf(cfg *config.Config, params []*nn.Param, policy precision.Policy, state int64) *Ranks {
	r := &Ranks{Count: cfg.Parallel.Ranks, Zero: cfg.Parallel.Zero}
	if r.Count < 2 {
		return nil
	}
	s := ShareOf(cfg, params, policy, state)
	r.Sums = s.Blocks
	for zero := range Stages {
		r.Stages = append(r.Stages, s.At(zero, r.Count))
	}
	return r
}

// Shared is a model whose ranks share weights, gradients and optimizer state, in bytes of the whole.
type Shared struct {
	Updated    float64 // weights as they are updated
	Read       float64 // weights as products read them
	Master     float64 // those of Updated that products do not read: matrices whose operands are narrower
	Gradients  float64
	State      float64
	Travelling float64 // gradients of a micro-batch on their way
	Blocks     int     // of micro-batches that a rank sums and sends in a step, at most
	Micro      int     // micro-batches that a rank computes in a step, at most
}

// ShareOf returns what the ranks of a run share. state is its optimizer state, in bytes.
func ShareOf(cfg *config.Config, params []*nn.Param, policy precision.Policy, state int64) Shared {
	s := Shared{State: float64(state)}
	for _, p := range params {
		n, updated, read := float64(p.Len()), p.Value.DType(), readAs(p, policy)
		s.Updated += n * float64(updated.Size())
		s.Read += n * float64(read.Size())
		if read != updated {
			s.Master += n * float64(updated.Size())
		}
		s.Gradients += n * float64(p.Grad.DType().Size())
		s.Travelling += n * wireBytes(cfg.Parallel.Wire, p.Grad.DType())
	}
	micro := cfg.Train.BatchTokens / (cfg.Train.MicroBatch * cfg.Model.Context)
	blocks := (micro + cfg.Parallel.SumBlock - 1) / cfg.Parallel.SumBlock
	s.Blocks = (blocks + cfg.Parallel.Ranks - 1) / cfg.Parallel.Ranks
	s.Micro = min(s.Blocks*cfg.Parallel.SumBlock, micro)
	return s
}

// readAs returns the format in which products read a weight, which is rounded to it anyway. The FP8 products scale
// weights as they are updated.
func readAs(p *nn.Param, policy precision.Policy) tensor.DType {
	if operand := policy.Operand; p.Role == nn.Matrix && policy.FP8 == nil && operand.Size() < p.Value.DType().Size() {
		return operand
	}
	return p.Value.DType()
}

// wireBytes is the size of an element of a gradient that travels. int8 has an F32 scale for every 256 elements.
func wireBytes(wire string, gradient tensor.DType) float64 {
	switch wire {
	case "bf16":
		return 2
	case "int8":
		return 1 + 4./256
	}
	return float64(gradient.Size())
}

// At returns what a rank of a group keeps and sends at a stage of ZeRO.
func (s Shared) At(zero, ranks int) Stage {
	d := float64(ranks)
	others := (d - 1) / d
	t := Stage{Zero: zero, Weights: s.Updated, Gradients: s.Gradients, State: s.State / d}
	t.SentGradients, t.SentWeights = float64(s.Blocks)*s.Travelling*others, s.Read*others
	switch zero {
	case 0:
		t.State = s.State
		t.SentGradients += s.Gradients * others
		t.SentWeights = 0
	case 1:
		t.Weights = s.Read + s.Master/d
	case 2:
		t.Weights, t.Gradients = s.Read+s.Master/d, s.Gradients/d
	case 3:
		t.Weights, t.Gradients = s.Updated/d, s.Gradients/d
		t.SentWeights = 2 * float64(s.Micro) * s.Read * others
	}
	return t
}
