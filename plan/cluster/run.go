package cluster

import "anneal/hardware"

// A Run is what is simulated.
type Run struct {
	Shape   Shape             `json:"shape"`
	Mesh    Mesh              `json:"mesh"`
	Batch   int               `json:"batch_sequences"` // of a step
	Cluster *hardware.Cluster `json:"cluster"`
	Stack   Stack             `json:"stack"`
}

// A Mesh is how ranks share a run. Ranks are numbered with tensor fastest, then context, data, and pipeline slowest.
type Mesh struct {
	Data     int  `json:"dp"`
	Tensor   int  `json:"tp"`
	Sequence bool `json:"sp"` // sequence parallelism among the ranks of tensor parallelism
	Pipeline int  `json:"pp"`
	Chunks   int  `json:"vpp"` // of layers on each stage
	Context  int  `json:"cp"`
	Expert   int  `json:"ep"`
	Zero     int  `json:"zero"`
	// ranks that share one copy of the state; 0: all with its weights
	Shard     int                `json:"shard,omitempty"`
	Micro     int                `json:"micro_batch"` // sequences
	Schedule  string             `json:"schedule"`    // as package program names it
	Recompute Recompute          `json:"recompute"`
	Precision hardware.Precision `json:"precision"`
}

// Ranks returns the number of ranks.
func (m Mesh) Ranks() int { return m.Data * m.Tensor * m.Pipeline * m.Context }

// Recompute is what the backward pass computes again.
type Recompute string

// The ways to recompute.
const (
	None      Recompute = "none"
	Attention Recompute = "attention" // the core of attention: scores, softmax, weighted values
	Half      Recompute = "half"      // every second product, and what is between them
	Full      Recompute = "full"      // whole layers
)

// A Stack is what the software of a run does. The zero value is completed by the defaults of today's software.
type Stack struct {
	Attention     string `json:"attention"`      // unfused, flash, flash2 or fused: the generation of the kernel
	OverlapData   bool   `json:"overlap_data"`   // gradients and weights travel while ranks compute
	OverlapTensor bool   `json:"overlap_tensor"` // products run while their operands arrive
	GradientBytes int    `json:"gradient_bytes"` // of an element on the wire
	// with ZeRO 3 a compiler gathers the weight of each product when it is due, and sends its gradient in two bytes
	GathersProducts bool `json:"gathers_products"`
	Eager           bool `json:"eager"` // passes between products are not fused by a compiler or by hand
}

// Modern is the stack of today's software.
var Modern = Stack{Attention: "fused", OverlapData: true, GradientBytes: 4}

// tokens returns the tokens of a micro-batch that a rank has.
func (r *Run) tokens() int { return max(1, r.Mesh.Micro*r.Shape.Context/r.Mesh.Context) }

// repeated returns the shape that ranks of tensor parallelism hold together: if they are more than the heads of keys
// and values, each has one of them.
func (r *Run) repeated() Shape {
	s := r.Shape
	s.KVHeads = max(s.kv(), r.Mesh.Tensor)
	return s
}

// Micros returns the micro-batches of a step, of one rank.
func (r *Run) Micros() int { return max(1, r.Batch/(r.Mesh.Data*r.Mesh.Micro)) }
