package cluster

import (
	"errors"
	"fmt"
)

// Check returns everything that is wrong with a run, or nil.
func (r *Run) Check() error {
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	s, m := &r.Shape, r.Mesh
	for _, n := range []struct {
		name string
		n    int
	}{
		{"layers", s.Layers}, {"dim", s.Dim}, {"heads", s.Heads}, {"vocab", s.Vocab}, {"context", s.Context},
		{"dp", m.Data}, {"tp", m.Tensor}, {"pp", m.Pipeline}, {"cp", m.Context}, {"micro-batch", m.Micro},
		{"batch", r.Batch},
	} {
		fault(n.n < 1 || n.n > 1<<30, "%s = %d, must be from 1 to %d", n.name, n.n, 1<<30)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	fault(m.Ranks() != r.Cluster.Devices, "dp=%d × tp=%d × pp=%d × cp=%d = %d ranks, but %s has %d devices",
		m.Data, m.Tensor, m.Pipeline, m.Context, m.Ranks(), r.Cluster, r.Cluster.Devices)
	fault(s.Heads%m.Tensor != 0, "tp=%d does not divide %d heads", m.Tensor, s.Heads)
	chunks := max(m.Chunks, 1)
	fault(m.Pipeline*chunks > s.Layers, "pp=%d × vpp=%d are more parts than the %d layers", m.Pipeline, chunks,
		s.Layers)
	fault(m.Pipeline == 1 && chunks > 1, "vpp=%d needs more than one stage", chunks)
	fault(s.Context%m.Context != 0, "cp=%d does not divide sequences of %d tokens", m.Context, s.Context)
	fault(r.Batch%(m.Data*m.Micro) != 0, "a batch of %d sequences is no multiple of dp=%d × micro-batch %d", r.Batch,
		m.Data, m.Micro)
	fault(m.Zero < 0 || m.Zero > 3, "zero=%d, must be 0 to 3", m.Zero)
	fault(s.Experts > 0 && s.Experts%max(m.Expert, 1) != 0, "ep=%d does not divide %d experts", m.Expert, s.Experts)
	fault(s.Experts == 0 && m.Expert > 1, "ep=%d: the model has no experts", m.Expert)
	fault(m.Data*m.Context*m.Tensor%max(m.Expert, 1) != 0, "ep=%d does not divide dp × cp × tp = %d", m.Expert,
		m.Data*m.Context*m.Tensor)
	return errors.Join(faults...)
}
