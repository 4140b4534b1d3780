package cluster

import "anneal/hardware"

// A Run holds the inputs of a simulation.
type Run struct {
	Shape   Shape             `json:"shape"`
	Mesh    Mesh              `json:"mesh"`
	Batch   int               `json:"batch_sequences"` // of a step
	Cluster *hardware.Cluster `json:"cluster"`
	Stack   Stack             `json:"stack"`
}

// A Mesh describes how ranks share a run. In the numbering of ranks, tensor varies fastest, then context, then data,
// and pipeline slowest.
type Mesh struct {
	Data     int  `json:"dp"`
	Tensor   int  `json:"tp"`
	Sequence bool `json:"sp"` // sequence parallelism among the ranks of tensor parallelism
	Pipeline int  `json:"pp"`
	Chunks   int  `json:"vpp"` // of layers on each stage
	Context  int  `json:"cp"`
	Expert   int  `json:"ep"`
	Zero     int  `json:"zero"`
	// ranks that share one copy of the state; 0 means all ranks with the same weights
	Shard     int                `json:"shard,omitempty"`
	Micro     int                `json:"micro_batch"` // sequences
	Schedule  string             `json:"schedule"`    // a name of package program
	Recompute Recompute          `json:"recompute"`
	Precision hardware.Precision `json:"precision"`
}

// Ranks returns the number of ranks.
func (m Mesh) Ranks() int { return m.Data * m.Tensor * m.Pipeline * m.Context }

// Recompute says what the backward pass recomputes.
type Recompute string

// The ways to recompute.
const (
	None      Recompute = "none"
	Attention Recompute = "attention" // the core of attention: scores, softmax, weighted values
	Half      Recompute = "half"      // every second product, and the operations between them
	Full      Recompute = "full"      // whole layers
)

// A Stack describes the software of a run. Zero fields are completed by the defaults of today's software.
type Stack struct {
	Attention     string `json:"attention"`      // unfused, flash, flash2 or fused: the generation of the kernel
	OverlapData   bool   `json:"overlap_data"`   // gradients and weights are sent while ranks compute
	OverlapTensor bool   `json:"overlap_tensor"` // products run while their operands arrive
	GradientBytes int    `json:"gradient_bytes"` // of an element on the wire
	// with ZeRO 3 a compiler gathers the weight of each product when it is due, and sends its gradient in two bytes
	GathersProducts bool `json:"gathers_products"`
	Eager           bool `json:"eager"` // passes between products are not fused by a compiler or by hand
}

// Modern is the stack of today's software.
var Modern = Stack{Attention: "fused", OverlapData: true, GradientBytes: 4}

// tokens returns a rank's number of tokens in a micro-batch.
func (r *Run) tokens() int { return max(1, r.Mesh.Micro*r.Shape.Context/r.Mesh.Context) }

// repeated returns the shape that the ranks of tensor parallelism hold together. If there are more ranks than
// key-value heads, heads are repeated so that each rank has one.
func (r *Run) repeated() Shape {
	s := r.Shape
	s.KVHeads = max(s.kv(), r.Mesh.Tensor)
	return s
}

// Micros returns the number of micro-batches of one rank in a step.
func (r *Run) Micros() int { return max(1, r.Batch/(r.Mesh.Data*r.Mesh.Micro)) }
