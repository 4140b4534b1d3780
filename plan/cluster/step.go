package cluster

import (
	"anneal/hardware"
	"anneal/program"
)

// A Step is the predicted course of a step. Times are in seconds.
type Step struct {
	Seconds float64 `json:"step_seconds"`
	Phases  Phases  `json:"phases"`
	Bubble  float64 `json:"bubble_fraction"` // idle share of the pipeline
	Exposed float64 `json:"exposed_communication_seconds"`
	Tokens  float64 `json:"tokens_per_second"`
	MFU     float64 `json:"mfu"`
	HFU     float64 `json:"hfu"` // also counts recomputation

	Stages    []Stage           `json:"-"`
	Lists     [][]program.Instr `json:"-"` // of the micro-batches that were simulated
	Timeline  program.Timeline  `json:"-"`
	Simulated int               `json:"-"` // micro-batches of the timeline
}

// Phases divides the time of a step into phases, for the mean rank. They add up to the time.
type Phases struct {
	Forward   float64 `json:"forward"`
	Backward  float64 `json:"backward"`
	Recompute float64 `json:"recompute"`
	Tensor    float64 `json:"tensor_messages"` // exposed
	Other     float64 `json:"layer_messages"`  // exposed: of context, experts and sharded weights
	Data      float64 `json:"data_messages"`   // exposed: gradients and weights at the end of the step
	Optimizer float64 `json:"optimizer"`
	Idle      float64 `json:"idle"` // waiting for other stages
}

// A Stage describes a stage of the pipeline.
type Stage struct {
	Parts [][2]int // layers from, to, by chunk
	Peak  int      // micro-batches kept at one time, counted in each chunk
}

// Simulate predicts a step. The run must be valid.
func (r *Run) Simulate() (*Step, error) {
	return r.simulate(r.Micros(), lateLists)
}

// First predicts a step with only the given number of micro-batches. It looks like the whole step without its middle.
func (r *Run) First(micros int) (*Step, error) {
	x := *r
	x.Batch = micros * r.Mesh.Data * r.Mesh.Micro
	return x.Simulate()
}

// A lister returns the instructions of each stage by a schedule.
type lister func(schedule string, stages, micros int) ([][]program.Instr, error)

// lateLists returns the lists of stages that post receives in advance and wait only for the message that they need
// next.
func lateLists(schedule string, stages, micros int) ([][]program.Instr, error) {
	s, err := program.Parse(schedule)
	if err != nil {
		return nil, err
	}
	lists, err := s.Fit(stages, micros)
	if err != nil {
		return nil, err
	}
	return program.Late(lists), nil
}

// Shortened simulates enough micro-batches to reach the steady state of the pipeline, and extrapolates: every further
// round of one micro-batch per stage takes as long as the round before.
func (r *Run) Shortened() (*Step, error) { return r.shortened(lateLists) }

func (r *Run) shortened(lists lister) (*Step, error) {
	m, p := r.Micros(), r.Mesh.Pipeline
	short := 4*p + m%p
	if m <= short+p {
		return r.simulate(m, lists)
	}
	return r.simulate(short, lists)
}

func (r *Run) simulate(micros int, lists lister) (*Step, error) {
	a, m := newMachine(r.Cluster), r.Mesh
	parts := r.parts()
	costs := r.partCosts(parts, a)
	var c program.Costs
	for _, x := range costs {
		c.Forward = append(c.Forward, x.forward+x.ends+x.tensorForward+x.otherForward)
		c.BackwardInput = append(c.BackwardInput,
			x.input+r.again(x)+x.tensorBackward+x.otherBackward)
		c.BackwardWeights = append(c.BackwardWeights, x.weights)
	}
	c.Messages = r.hops()
	s := &Step{Simulated: micros}
	var err error
	if s.Lists, err = lists(m.Schedule, m.Pipeline, micros); err != nil {
		return nil, err
	}
	if s.Timeline, err = program.Simulate(s.Lists, c); err != nil {
		return nil, err
	}
	total := s.Timeline.Total
	all := r.Micros()
	if all > micros {
		more, err := lists(m.Schedule, m.Pipeline, micros+m.Pipeline)
		if err != nil {
			return nil, err
		}
		longer, err := program.Simulate(more, c)
		if err != nil {
			return nil, err
		}
		total += (longer.Total - total) * float64(all-micros) / float64(m.Pipeline)
	}
	for stage := range m.Pipeline {
		st := Stage{Peak: s.Timeline.Peak[stage]}
		for v := range max(m.Chunks, 1) {
			st.Parts = append(st.Parts, parts[v*m.Pipeline+stage])
		}
		s.Stages = append(s.Stages, st)
	}
	r.account(s, costs, total, a)
	return s, nil
}

// again returns the time that a backward pass spends on recomputation.
func (r *Run) again(x cost) float64 {
	switch r.Mesh.Recompute {
	case Full:
		return x.forward + x.tensorForward + x.repeated
	case Half:
		return (x.forward - x.core) / 2
	case Attention:
		if r.Stack.Attention == "unfused" {
			return x.core
		}
		return 0
	default:
		return 0
	}
}

// hops returns the time of a message from each stage to the next, and from the last to the first. Of the ranks of a
// stage, those that send through the outermost level decide.
func (r *Run) hops() []float64 {
	m := r.Mesh
	if m.Pipeline == 1 {
		return nil
	}
	bytes := 2 * float64(r.tokens()) * float64(r.Shape.Dim) / float64(m.Tensor) // each rank sends its share of rows
	ranks := m.Tensor * m.Context * m.Data
	list := make([]float64, m.Pipeline)
	for i := range m.Pipeline - 1 {
		list[i] = r.Cluster.Message(bytes, i*ranks, (i+2)*ranks-1)
	}
	list[m.Pipeline-1] = r.Cluster.Message(bytes, 0, m.Pipeline*ranks-1)
	return list
}

// parts cuts the layers evenly if their number allows it, as most software does, and otherwise so that the slowest
// part is as fast as possible.
func (r *Run) parts() [][2]int {
	n, layers := r.Mesh.Pipeline*max(r.Mesh.Chunks, 1), r.Shape.Layers
	counts := make([]int, n)
	if layers%n == 0 {
		for i := range counts {
			counts[i] = layers / n
		}
	} else {
		costs := make([]float64, layers)
		for i := range costs {
			costs[i] = 1
		}
		shared, experts := r.Shape.layerParameters(layers - 1)
		if experts > 0 {
			shared += experts * float64(r.Shape.TopK) / float64(r.Shape.Experts)
		}
		costs[layers-1] += float64(1+r.Shape.Extra) * r.Shape.table() / shared
		counts = program.Balance(costs, n)
	}
	list, at := make([][2]int, n), 0
	for i, k := range counts {
		list[i] = [2]int{at, at + k}
		at += k
	}
	return list
}

// partCosts returns the cost of each part.
func (r *Run) partCosts(parts [][2]int, a machine) []cost {
	enter, leave := r.ends(a)
	dense, routed := r.layer(0, a), cost{}
	if r.Shape.Experts > 0 {
		routed = r.layer(r.Shape.Dense, a)
	}
	list := make([]cost, len(parts))
	for i, p := range parts {
		for k := p[0]; k < p[1]; k++ {
			if r.Shape.hasExperts(k) {
				list[i].add(routed)
			} else {
				list[i].add(dense)
			}
		}
	}
	if r.Mesh.Zero == 3 {
		r.shardedTables(list)
	}
	list[0].addEnd(enter)
	list[len(list)-1].addEnd(leave)
	for range r.Shape.Extra {
		last := routed
		if r.Shape.Experts == 0 {
			last = dense
		}
		list[len(list)-1].add(last)
		list[len(list)-1].addEnd(leave)
	}
	return list
}

// addEnd adds the cost of the embedding or the head. Its forward pass goes to ends, because it is never recomputed.
func (c *cost) addEnd(d cost) {
	c.ends += d.forward
	c.input += d.input
	c.weights += d.weights
}

// account fills in the figures of a step from the time of its pipeline.
func (r *Run) account(s *Step, costs []cost, pipeline float64, a machine) {
	m, micros := r.Mesh, float64(r.Micros())
	var p Phases
	for _, x := range costs {
		k := micros / float64(m.Pipeline)
		p.Forward += k * (x.forward + x.ends)
		p.Backward += k * (x.input + x.weights)
		p.Recompute += k * r.again(x)
		p.Tensor += k * (x.tensorForward + x.tensorBackward)
		p.Other += k * (x.otherForward + x.otherBackward)
	}
	p.Idle = max(0, pipeline-p.Forward-p.Backward-p.Recompute-p.Tensor-p.Other)
	for i := range m.Pipeline {
		data, optimizer := r.tail(s.Stages[i], costs, i, a)
		if data+optimizer > p.Data+p.Optimizer {
			p.Data, p.Optimizer = data, optimizer
		}
	}
	s.Phases, s.Seconds = p, pipeline+p.Data+p.Optimizer
	s.Bubble = p.Idle / pipeline
	s.Exposed = p.Tensor + p.Other + p.Data
	tokens := float64(r.Batch) * float64(r.Shape.Context)
	s.Tokens = tokens / s.Seconds
	peak := a.Peak[a.Computes(hardware.BF16)] * float64(m.Ranks())
	s.MFU = s.Tokens * r.Shape.FLOPs() / peak
	s.HFU = s.Tokens * r.hardwareFLOPs() / peak
}

// hardwareFLOPs returns the operations of a token including recomputation.
func (r *Run) hardwareFLOPs() float64 {
	f := r.Shape.FLOPs()
	head := 6 * float64(1+r.Shape.Extra) * r.Shape.table() // heads are not computed again
	switch r.Mesh.Recompute {
	case Full:
		return f + (f-head)/3
	case Half:
		return f + (f-head-r.Shape.attentionFLOPs())/6
	case Attention:
		if r.Stack.Attention == "unfused" {
			return f + r.Shape.attentionFLOPs()/3
		}
		return f
	default:
		return f
	}
}

// tail returns the time of a stage after its last micro-batch: the update, and the exchange of gradients and weights
// as far as the last backward pass and the next forward pass do not hide it.
func (r *Run) tail(st Stage, costs []cost, stage int, a machine) (data, optimizer float64) {
	m, net := r.Mesh, r.Cluster
	shared, experts := r.stageParameters(st, stage)
	copies, expertCopies := m.dataGroup(), m.expertDataGroup()
	var forward, backward float64
	for v := range st.Parts {
		x := costs[v*m.Pipeline+stage]
		forward += x.forward
		backward += x.input + x.weights + r.again(x)
	}
	wire := float64(r.Stack.GradientBytes)
	var gradients, weights float64
	switch m.Zero {
	case 0:
		gradients = net.Time(hardware.AllReduce, wire*shared, copies) +
			net.Time(hardware.AllReduce, wire*experts, expertCopies)
	case 1, 2:
		gradients = net.Time(hardware.ReduceScatter, wire*shared, copies) +
			net.Time(hardware.ReduceScatter, wire*experts, expertCopies)
		weights = net.Time(hardware.AllGather, 2*shared, copies) + net.Time(hardware.AllGather, 2*experts, expertCopies)
	}
	if m.Zero == 3 {
		gradients = net.Time(hardware.AllReduce, wire*shared/float64(m.shardGroup().Size), m.copyGroup())
	}
	if r.Stack.OverlapData {
		gradients, weights = exposed(gradients, backward), exposed(weights, forward)
	}
	if m.Zero == 2 { // a rank keeps only its share of the sum, so every micro-batch sends its gradients
		gradients *= float64(r.Micros())
	}
	owned := shared
	if m.Zero > 0 {
		owned = shared/float64(m.shardGroup().Size) + experts/float64(expertCopies.Size)
	} else {
		owned += experts
	}
	// AdamW reads the gradient, the weight and two moments in FP32, writes the latter three, and the weight in BF16.
	return gradients + weights, a.pass(30 * owned)
}

// stageParameters returns the parameters of a rank of a stage before data parallelism shards them.
func (r *Run) stageParameters(st Stage, stage int) (shared, experts float64) {
	m, shape := r.Mesh, r.repeated()
	for v, p := range st.Parts {
		s, e := shape.spanParameters(p[0], shape.upTo(p[1]))
		shared, experts = shared+s, experts+e
		if part := v*m.Pipeline + stage; part == 0 || part == m.Pipeline*max(m.Chunks, 1)-1 {
			if part > 0 || m.Pipeline*max(m.Chunks, 1) > 1 || r.Shape.Tied {
				shared += r.Shape.table()
			} else {
				shared += 2 * r.Shape.table()
			}
		}
	}
	return shared / float64(m.Tensor), experts / float64(max(m.Expert, 1))
}
