package cluster

import "anneal/hardware"

// The groups of ranks along each axis of a mesh.
func (m Mesh) tensorGroup() hardware.Group  { return hardware.Group{Size: m.Tensor, Stride: 1} }
func (m Mesh) contextGroup() hardware.Group { return hardware.Group{Size: m.Context, Stride: m.Tensor} }
func (m Mesh) expertGroup() hardware.Group  { return hardware.Group{Size: m.Expert, Stride: 1} }

// dataGroup returns the ranks that have copies of a weight, by data and context parallelism.
func (m Mesh) dataGroup() hardware.Group {
	return hardware.Group{Size: m.Data * m.Context, Stride: m.Tensor}
}

// shardGroup returns the ranks that ZeRO cuts a weight among.
func (m Mesh) shardGroup() hardware.Group {
	g := m.dataGroup()
	if m.Shard > 0 {
		g.Size = min(g.Size, m.Shard)
	}
	return g
}

// copyGroup returns the ranks that have the same piece of a weight, one of each shardGroup.
func (m Mesh) copyGroup() hardware.Group {
	g := m.shardGroup()
	return hardware.Group{Size: max(1, m.Data*m.Context/g.Size), Stride: g.Size * g.Stride}
}

// expertDataGroup returns the ranks that have copies of an expert.
func (m Mesh) expertDataGroup() hardware.Group {
	e := max(m.Expert, 1)
	return hardware.Group{Size: max(1, m.Data*m.Context*m.Tensor/e), Stride: e}
}

// exposed returns the time of messages that is not hidden behind a computation. Both share memory and cores, which
// costs a tenth of the shorter one.
func exposed(messages, computing float64) float64 {
	return max(0, messages-computing) + interference*min(messages, computing)
}

const interference = 0.1

// layerMessages adds the messages of layer i.
func (r *Run) layerMessages(c *cost, a machine, i int) {
	s, m, net := r.repeated(), r.Mesh, r.Cluster
	stream := 2 * float64(r.tokens()) * float64(s.Dim)
	if m.Tensor > 1 {
		sums := 2.0
		if s.Side {
			sums = 1
		}
		once := net.Time(hardware.AllReduce, stream, m.tensorGroup())
		if m.Sequence {
			once = net.Time(hardware.AllGather, stream, m.tensorGroup()) +
				net.Time(hardware.ReduceScatter, stream, m.tensorGroup())
		}
		c.tensorForward = sums * once
		if r.Stack.OverlapTensor {
			c.tensorForward = exposed(sums*once, c.products*(1-1/float64(m.Tensor)))
		}
		c.tensorBackward = exposed(sums*once, c.weights) // while the gradients of weights are computed
	}
	if m.Context > 1 {
		once := net.Time(hardware.AllGather, r.gatheredKV(), m.contextGroup())
		c.otherForward += exposed(once, c.core)
		c.otherBackward += exposed(2*once, 2.5*c.core)
	}
	if m.Expert > 1 && s.hasExperts(i) {
		routed := stream * float64(s.TopK)
		if m.Sequence {
			routed /= float64(m.Tensor)
		}
		once := 2 * net.Time(hardware.AllToAll, routed, m.expertGroup()) // there and back
		c.otherForward += once
		c.otherBackward += once
	}
	c.repeated = c.otherForward
	if m.Zero == 3 { // gathered once for the backward pass, whether it recomputes or not
		r.shardedMessages(c, i)
	}
}

// gatheredKV returns the bytes of the keys and values of all ranks of context parallelism, in one layer. Keys have the
// dimensions of queries.
func (r *Run) gatheredKV() float64 {
	s, m := r.repeated(), r.Mesh
	return 2 * float64(r.tokens()*m.Context) * float64(s.kv()*(s.queryDim()+s.valueDim())) / float64(m.Tensor)
}

// shardedMessages adds the messages of ZeRO-3: weights are gathered for each forward and each backward pass, and
// gradients are reduced after it.
func (r *Run) shardedMessages(c *cost, i int) {
	m, net := r.Mesh, r.Cluster
	s := r.repeated()
	shared, experts := s.layerParameters(i)
	shared /= float64(m.Tensor)
	experts /= float64(max(m.Expert, 1))
	gather := net.Time(hardware.AllGather, 2*shared, m.shardGroup()) +
		net.Time(hardware.AllGather, 2*experts, m.expertDataGroup())
	wire := float64(r.Stack.GradientBytes)
	reduce := net.Time(hardware.ReduceScatter, wire*shared, m.shardGroup()) +
		net.Time(hardware.ReduceScatter, wire*experts, m.expertDataGroup())
	again := 0.0
	if m.Recompute == Full {
		again = c.forward
	}
	if !r.Stack.OverlapData {
		c.otherForward += gather
		c.otherBackward += gather + reduce
		return
	}
	c.otherForward += exposed(gather, c.forward)
	c.otherBackward += exposed(gather+reduce, c.input+c.weights+again)
}

// shardedTables adds the messages of ZeRO-3 for the embedding and the head, each gathered and reduced once for a
// micro-batch. Nothing hides those of the embedding, at the beginning of a forward pass and the end of a backward pass.
// The layers of the last part hide those of the head. A tied head without a pipeline is the embedding.
func (r *Run) shardedTables(parts []cost) {
	m, net := r.Mesh, r.Cluster
	table := r.Shape.table() / float64(m.Tensor)
	gather := net.Time(hardware.AllGather, 2*table, m.shardGroup())
	reduce := net.Time(hardware.ReduceScatter, float64(r.Stack.GradientBytes)*table, m.shardGroup())
	first, last := &parts[0], &parts[len(parts)-1]
	first.otherForward += gather
	first.otherBackward += reduce
	if len(parts) == 1 && r.Shape.Tied {
		return
	}
	if !r.Stack.OverlapData {
		last.otherForward += gather
		last.otherBackward += reduce
		return
	}
	last.otherForward += exposed(gather, last.forward)
	last.otherBackward += exposed(reduce, last.input+last.weights)
}
