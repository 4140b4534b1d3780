package cluster

// Memory holds the bytes that a rank of a stage keeps.
type Memory struct {
	Weights     float64 `json:"weights"`   // two bytes each; with ZeRO 3 those that are not gathered
	Gradients   float64 `json:"gradients"` // summed over micro-batches
	Optimizer   float64 `json:"optimizer"` // FP32 weights and two moments
	Activations float64 `json:"activations"`
	Logits      float64 `json:"logits"`
	Buffers     float64 `json:"buffers"` // temporary memory of a layer beyond that of the logits, which is free by then
	Reserved    float64 `json:"reserved"`
}

// Total returns the sum of all parts.
func (m Memory) Total() float64 {
	return m.Weights + m.Gradients + m.Optimizer + m.Activations + m.Logits + m.Buffers + m.Reserved
}

// reserved is the memory of a device that drivers, kernel libraries and communicators take: 2 GiB, about what runs
// report.
const reserved = 2 * gibi

const gibi = 1 << 30

// Usable is the share of a device's memory that a plan may fill; allocators lose the rest to fragmentation.
const Usable = 0.95

// Memory returns the memory of each stage in a simulated step, for the rank that needs the most.
func (r *Run) Memory(s *Step) []Memory {
	list := make([]Memory, len(s.Stages))
	for i, st := range s.Stages {
		list[i] = r.stageMemory(st, i)
	}
	return list
}

func (r *Run) stageMemory(st Stage, stage int) Memory {
	m, s := r.Mesh, &r.Shape
	shared, experts := r.stageParameters(st, stage)
	copies, expertCopies := float64(m.shardGroup().Size), float64(m.expertDataGroup().Size)
	all, owned := shared+experts, shared/copies+experts/expertCopies
	cut := func(zero int, bytes float64) float64 {
		if m.Zero >= zero {
			return bytes * owned
		}
		return bytes * all
	}
	layers, kept := 0, 0.0
	for _, p := range st.Parts {
		p[1] = s.upTo(p[1])
		dense := max(0, min(p[1], s.Dense)-p[0])
		if s.Experts == 0 {
			dense = p[1] - p[0]
		}
		if dense > 0 {
			kept += float64(dense) * r.kept(0)
		}
		if routed := p[1] - p[0] - dense; routed > 0 {
			kept += float64(routed) * r.kept(p[1]-1)
		}
		layers += p[1] - p[0]
	}
	chunks := float64(max(len(st.Parts), 1))
	mem := Memory{
		Gradients: cut(2, 4), Optimizer: cut(1, 12),
		Activations: kept / chunks * float64(st.Peak),
		Reserved:    reserved,
	}
	if m.Zero < 3 || copies == 1 { // not gathered
		mem.Weights += 2 * shared
	}
	if m.Zero < 3 || expertCopies == 1 {
		mem.Weights += 2 * experts
	}
	if stage == m.Pipeline-1 { // in two bytes, and in FP32 with their gradient
		mem.Logits = 6 * float64(r.tokens()) * float64(s.Vocab) / float64(m.Tensor)
	}
	mem.Buffers = max(0, r.working(layers)-mem.Logits)
	if m.Zero == 3 && stage == m.Pipeline-1 { // beside the logits, the gathered head and its gradient
		mem.Buffers = max(mem.Buffers, (2+4)*s.table()/float64(m.Tensor))
	}
	return mem
}

// working returns the bytes that a stage needs for the layer whose backward pass is running: its gradients, the keys
// and values that context parallelism gathers, everything that it keeps if it is recomputed, and with ZeRO 3 gathered
// weights and a gradient. Weights are gathered for whole layers, the next one in advance; a compiler that cuts products
// gathers them one after another.
func (r *Run) working(layers int) float64 {
	m, s := r.Mesh, r.repeated()
	last := max(0, s.Layers-1)
	stream := 2 * float64(r.tokens()) * float64(s.Dim)
	if m.Sequence {
		stream /= float64(m.Tensor)
	}
	bytes := 2 * stream
	if m.Context > 1 { // gathered keys and values, and their gradients
		bytes += 2 * r.gatheredKV()
	}
	if m.Recompute == Full || m.Recompute == Half {
		whole := *r
		whole.Mesh.Recompute = None
		bytes += whole.kept(last)
	}
	if m.Zero < 3 || layers == 0 {
		return bytes
	}
	one, own := s.layerParameters(last)
	if r.Stack.GathersProducts {
		return bytes + (2*2+2)*s.largestProduct()/float64(m.Tensor)
	}
	if bytes += (2*2 + 4) * one / float64(m.Tensor); m.expertDataGroup().Size > 1 {
		bytes += (2*2 + 4) * own / float64(max(m.Expert, 1))
	}
	return bytes
}

// kept returns the bytes that a rank keeps of layer i for one micro-batch: the inputs of every operation with a
// gradient, in two bytes, and dropout masks. For a dense GPT with dropout these are the 34·s·b·h/t of Korthikanti et
// al. (arXiv 2205.05198) with sequence parallelism, and 10 + 24/t without.
func (r *Run) kept(i int) float64 {
	s, m := r.repeated(), r.Mesh
	rows, d, t := float64(r.tokens()), float64(s.Dim), float64(m.Tensor)
	stream := rows * d
	if m.Sequence {
		stream /= t
	}
	if m.Recompute == Full {
		return 2 * stream
	}
	masks := 0.0
	if s.Dropout {
		masks = 2 * stream
	}
	// The inputs of both norms, and their results, which are the inputs of the cut products.
	whole := 4*stream + 4*stream + masks
	cut := 0.0
	for _, p := range s.projections() {
		switch {
		case p.rows:
			cut += 2 * rows * float64(p.in)
		case p.cut:
			cut += 2 * rows * float64(p.out)
		default:
			whole += 2 * rows * float64(p.out)
		}
	}
	inner := 2.0 // before and after the activation
	if s.Gated {
		inner = 3
	}
	if s.hasExperts(i) {
		routed := rows * float64(s.TopK)
		cut += 2 * inner * (routed*float64(s.ExpertFFN) + rows*float64(s.SharedFFN))
		cut += 4 * routed * d
	} else {
		cut += 2 * inner * rows * float64(s.FFN)
	}
	if r.Stack.Attention == "unfused" && m.Recompute != Attention {
		scores := float64(m.Micro) * float64(s.Heads) * float64(s.Context) * float64(s.Context)
		cut += 5 * scores
	}
	if m.Recompute == Half {
		return (whole+cut/t)/2 + stream
	}
	return whole + cut/t
}
