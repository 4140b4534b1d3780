package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// neighbours returns, for each mesh that differs from the best in one axis, or in tp and another one, what it costs or
// why it is refused, and the fastest of them if it is faster than the best.
func (x *explorer) neighbours(f *Found) (list []Rejected, faster *Found) {
	m := f.Mesh
	seen := map[Mesh]bool{m: true}
	for _, c := range []struct {
		axis   string
		with   string // the axis that gives or takes the devices
		value  any
		change func(m *Mesh)
	}{
		{"tp", "dp", m.Tensor * 2, func(m *Mesh) { m.Tensor, m.Data, m.Sequence = m.Tensor*2, m.Data/2, true }},
		{"tp", "dp", m.Tensor / 2, func(m *Mesh) { m.Tensor, m.Data, m.Sequence = m.Tensor/2, m.Data*2, m.Tensor > 2 }},
		{"pp", "dp", m.Pipeline * 2, func(m *Mesh) { m.Pipeline, m.Data = m.Pipeline*2, m.Data/2 }},
		{"pp", "dp", m.Pipeline / 2, func(m *Mesh) { m.Pipeline, m.Data = m.Pipeline/2, m.Data*2 }},
		{"cp", "dp", m.Context * 2, func(m *Mesh) { m.Context, m.Data = m.Context*2, m.Data/2 }},
		{"cp", "dp", m.Context / 2, func(m *Mesh) { m.Context, m.Data = m.Context/2, m.Data*2 }},
		{"tp", "cp", m.Tensor / 2, func(m *Mesh) {
			m.Tensor, m.Context, m.Sequence = m.Tensor/2, m.Context*2, m.Tensor > 2
		}},
		{"tp", "cp", m.Tensor * 2, func(m *Mesh) { m.Tensor, m.Context, m.Sequence = m.Tensor*2, m.Context/2, true }},
		{"tp", "pp", m.Tensor / 2, func(m *Mesh) {
			m.Tensor, m.Pipeline, m.Sequence = m.Tensor/2, m.Pipeline*2, m.Tensor > 2
		}},
		{"tp", "pp", m.Tensor * 2, func(m *Mesh) { m.Tensor, m.Pipeline, m.Sequence = m.Tensor*2, m.Pipeline/2, true }},
		{"ep", "", m.Expert * 2, func(m *Mesh) { m.Expert *= 2 }},
		{"ep", "", m.Expert / 2, func(m *Mesh) { m.Expert /= 2 }},
		{"vpp", "", m.Chunks * 2, func(m *Mesh) { m.SetChunks(m.Chunks * 2) }},
		{"vpp", "", m.Chunks / 2, func(m *Mesh) { m.SetChunks(m.Chunks / 2) }},
		{"vpp", "", m.Chunks + 1, func(m *Mesh) { m.SetChunks(m.Chunks + 1) }},
		{"vpp", "", m.Chunks - 1, func(m *Mesh) { m.SetChunks(m.Chunks - 1) }},
		{"micro", "", x.fixed.next(f.Run, 1), func(m *Mesh) { m.Micro = x.fixed.next(f.Run, 1) }},
		{"micro", "", x.fixed.next(f.Run, -1), func(m *Mesh) { m.Micro = x.fixed.next(f.Run, -1) }},
		{"recompute", "", None, func(m *Mesh) { m.Recompute = None }},
		{"recompute", "", Half, func(m *Mesh) { m.Recompute = Half }},
		{"recompute", "", Full, func(m *Mesh) { m.Recompute = Full }},
		{"zero", "", 0, func(m *Mesh) { m.Zero = 0 }},
		{"zero", "", 1, func(m *Mesh) { m.Zero = 1 }},
		{"zero", "", 2, func(m *Mesh) { m.Zero = 2 }},
		{"zero", "", 3, func(m *Mesh) { m.Zero = 3 }},
	} {
		switch {
		case x.fixed[c.axis], x.fixed[c.with], c.axis == "ep" && f.Run.Shape.Experts == 0,
			c.axis == "zero" && !slices.Contains(m.stages(m.Expert), c.value.(int)):
			continue
		}
		r := *f.Run
		c.change(&r.Mesh)
		change := fmt.Sprint(c.axis, "=", c.value)
		switch n := &r.Mesh; c.with {
		case "cp":
			change += fmt.Sprint(",cp=", n.Context)
		case "pp":
			change += fmt.Sprint(",pp=", n.Pipeline)
		}
		if c.with != "" {
			x.follow(&r, m)
			if r.Mesh.Chunks != m.Chunks {
				change += fmt.Sprint(",vpp=", r.Mesh.Chunks)
			}
		}
		n := r.Mesh
		if seen[n] || n.Ranks() != m.Ranks() ||
			min(n.Data, n.Tensor, n.Pipeline, n.Chunks, n.Context, n.Micro, n.Expert) < 1 {
			continue
		}
		seen[n] = true
		reason, g := x.against(f, &r)
		list = append(list, Rejected{Mesh: n, Change: change, Reason: reason})
		if g != nil && g.Step.Seconds < f.Step.Seconds && (faster == nil || byTime(g, faster) < 0) {
			faster = g
		}
	}
	return list, faster
}

// follow changes the axes of a neighbour that do not fit its new split, as far as they are not fixed: as many parts of
// layers as in the old mesh, a stage of ZeRO that has something to shard, and a micro-batch that divides the batch.
func (x *explorer) follow(r *Run, old Mesh) {
	m := &r.Mesh
	if m.Data < 1 || m.Tensor < 1 || m.Pipeline < 1 || m.Context < 1 {
		return
	}
	if parts := old.Pipeline * old.Chunks; old.Chunks > 1 && m.Pipeline != old.Pipeline && !x.fixed["vpp"] {
		if parts%m.Pipeline == 0 && m.Pipeline > 1 {
			m.SetChunks(parts / m.Pipeline)
		} else {
			m.SetChunks(1)
		}
	}
	if stages := m.stages(m.Expert); !x.fixed["zero"] && !slices.Contains(stages, m.Zero) {
		m.Zero = min(1, stages[len(stages)-1])
	}
	if !x.fixed["micro"] {
		for r.Batch%m.Data == 0 && r.Batch/m.Data%m.Micro != 0 {
			m.Micro--
		}
	}
}

// against compares the cost of a mesh with the best, or says why it is refused. It returns the mesh if it fits.
func (x *explorer) against(f *Found, r *Run) (string, *Found) {
	g, _, why := x.consider(r)
	if g == nil {
		return why.Reason, nil
	}
	if err := x.simulate(g); err != nil {
		return err.Error(), nil
	}
	if !g.fits() {
		return g.excess(), nil
	}
	return fmt.Sprintf("%+.1f %% time, mostly %s", 100*(g.Step.Seconds/f.Step.Seconds-1),
		difference(g.Step.Phases, f.Step.Phases)), g
}

// difference names the phase that changes most.
func difference(p, q Phases) string {
	type change struct {
		name string
		d    float64
	}
	changes := []change{
		{"products", p.Forward + p.Backward - q.Forward - q.Backward}, {"recomputing", p.Recompute - q.Recompute},
		{"messages of tensor parallelism", p.Tensor - q.Tensor}, {"messages of layers", p.Other - q.Other},
		{"gradients and weights on their way", p.Data - q.Data}, {"the optimizer", p.Optimizer - q.Optimizer},
		{"idle stages", p.Idle - q.Idle},
	}
	most := slices.MaxFunc(changes, func(a, b change) int { return cmp.Compare(max(a.d, -a.d), max(b.d, -b.d)) })
	return fmt.Sprintf("%s %+.3f s", most.name, most.d)
}
