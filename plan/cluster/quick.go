package cluster

import "anneal/program"

// A candidate is a mesh with its parts and the memory of its stages, before its time is computed.
type candidate struct {
	*Run
	parts  [][2]int
	stages []Stage
}

// newCandidate returns the candidate of a valid run, by the closed form of its schedule.
func (r *Run) newCandidate(parts [][2]int) candidate {
	m, chunks := r.Mesh, max(r.Mesh.Chunks, 1)
	c := candidate{Run: r, parts: parts, stages: make([]Stage, m.Pipeline)}
	cuts := make([][2]int, m.Pipeline*chunks)
	for i := range c.stages {
		st := &c.stages[i]
		st.Peak = program.InterleavedPeak(m.Pipeline, chunks, r.Micros(), i)
		st.Parts = cuts[i*chunks : (i+1)*chunks]
		for v := range chunks {
			st.Parts[v] = parts[v*m.Pipeline+i]
		}
	}
	return c
}

// quick returns a step by the closed form of its schedule: micro-batches of the slowest stage follow each other, and
// the pipeline fills and drains in chunks. Chunks hide nothing of a pipeline with fewer micro-batches than stages: each
// of them passes all stages for every chunk.
func (c candidate) quick() *Step {
	a, m := newMachine(c.Cluster), c.Mesh
	costs := c.partCosts(c.parts, a)
	s := &Step{Stages: c.stages}
	slowest, all := 0.0, 0.0
	for i := range c.stages {
		sum := 0.0
		for v := range max(m.Chunks, 1) {
			x := costs[v*m.Pipeline+i]
			sum += x.forward + x.ends + x.input + x.weights + c.again(x) + x.tensorForward + x.tensorBackward +
				x.otherForward + x.otherBackward
		}
		slowest, all = max(slowest, sum), all+sum
	}
	fill := (all - all/float64(m.Pipeline)) / float64(max(m.Chunks, 1))
	rounds := c.Micros()
	if m.Chunks > 1 {
		rounds = max(rounds, m.Pipeline)
	}
	messages := 0.0
	if m.Pipeline > 1 {
		for _, t := range c.hops()[:m.Pipeline-1] {
			messages += 2 * t // there and back
		}
	}
	c.account(s, costs, float64(rounds)*slowest+fill+messages, a)
	return s
}
