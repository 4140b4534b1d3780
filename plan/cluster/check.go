package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/internal/nearest"
)

// most is larger than the value of any axis, batch or shape.
const most = 1 << 30

// Check returns all errors of a run, or nil. Of a run without a cluster or without a shape, it checks the rest.
func (r *Run) Check() error {
	s, m := &r.Shape, r.Mesh
	c := checks{r.CheckAxes(nil)}
	for _, n := range []struct {
		name string
		n    int
	}{{"layers", s.Layers}, {"dim", s.Dim}, {"heads", s.Heads}, {"vocab", s.Vocab}, {"context", s.Context}} {
		c.fault(s.Name != "" && (n.n < 1 || n.n > most), "%s = %d, must be from 1 to %d", n.name, n.n, most)
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"ffn", s.FFN}, {"kv_heads", s.KVHeads}, {"head_dim", s.HeadDim}, {"experts", s.Experts}, {"top_k", s.TopK},
		{"expert_ffn", s.ExpertFFN}, {"shared_ffn", s.SharedFFN}, {"dense_layers", s.Dense}} {
		c.fault(n.n < 0 || n.n > most, "%s = %d, must be from 0 to %d", n.name, n.n, most)
	}
	c.fault(s.Heads > 0 && s.Dim > 0 && s.headDim() < 1, "%d heads have no dimension each in dim = %d", s.Heads, s.Dim)
	c.fault(s.Name != "" && (r.Batch < 1 || r.Batch > most), "the batch has %d sequences, must be from 1 to %d",
		r.Batch, most)
	if r.Cluster != nil {
		ranks := float64(m.Data) * float64(m.Tensor) * float64(m.Pipeline) * float64(m.Context)
		whole := ranks == float64(r.Cluster.Devices)
		c.fault(!whole, "dp=%d × tp=%d × pp=%d × cp=%d = %.0f ranks, but %s has %d "+
			"devices", m.Data, m.Tensor, m.Pipeline, m.Context, ranks, r.Cluster, r.Cluster.Devices)
		if whole { // so that products of axes do not overflow
			each := m.Data * m.Context * m.Tensor
			c.fault(each%max(m.Expert, 1) != 0, "ep=%d does not divide dp × cp × tp = %d", m.Expert, each)
		}
		if each := m.Data * m.Micro; whole && r.Batch > 0 && m.Data > 0 && m.Micro > 0 && max(m.Data, m.Micro) <= most {
			c.fault(r.Batch%each != 0, "a batch of %d sequences is no multiple of dp=%d × micro=%d = %d", r.Batch,
				m.Data, m.Micro, each)
		}
	}
	chunks := max(m.Chunks, 1)
	c.fault(s.Layers > 0 && m.Pipeline <= s.Layers && m.Pipeline*chunks > s.Layers,
		"pp=%d × vpp=%d = %d parts, more than the %d layers", m.Pipeline, chunks, m.Pipeline*chunks, s.Layers)
	c.fault(m.Pipeline == 1 && chunks > 1, "vpp=%d needs more than one stage", chunks)
	return errors.Join(c...)
}

// CheckAxes returns the errors of single axes of the mesh: of the axes in fixed, or of all if fixed is nil.
func (r *Run) CheckAxes(fixed Axes) error {
	var c checks
	s, m := &r.Shape, r.Mesh
	axis := func(name string, wrong bool, format string, args ...any) {
		c.fault(wrong && (fixed == nil || fixed[name]), format, args...)
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"dp", m.Data}, {"tp", m.Tensor}, {"pp", m.Pipeline}, {"cp", m.Context}, {"micro", m.Micro}} {
		axis(n.name, n.n < 1 || n.n > most, "%s=%d, must be from 1 to %d", n.name, n.n, most)
	}
	axis("zero", m.Zero < 0 || m.Zero > 3, "zero=%d, must be 0 to 3", m.Zero)
	if s.Name == "" {
		return errors.Join(c...)
	}
	heads := fmt.Sprintf("%d heads", s.Heads)
	if s.kv() != s.Heads {
		heads += fmt.Sprintf(" with %d heads of keys and values", s.kv())
	}
	axis("tp", m.Tensor > 0 && !s.sharedBy(m.Tensor), "tp=%d does not divide %s", m.Tensor, heads)
	axis("pp", m.Pipeline > s.Layers && s.Layers > 0, "pp=%d is more than the %d layers", m.Pipeline, s.Layers)
	axis("cp", s.Context%max(m.Context, 1) != 0, "cp=%d does not divide sequences of %d tokens", m.Context, s.Context)
	axis("ep", s.Experts > 0 && s.Experts%max(m.Expert, 1) != 0, "ep=%d does not divide %d experts", m.Expert,
		s.Experts)
	axis("ep", r.Cluster != nil && m.Expert > r.Cluster.Devices, "ep=%d is more than the devices of %s", m.Expert,
		r.Cluster)
	axis("ep", s.Experts == 0 && m.Expert > 1, "ep=%d: the model has no experts", m.Expert)
	return errors.Join(c...)
}

type checks []error

func (c *checks) fault(wrong bool, format string, args ...any) {
	if wrong {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// ParseRecompute returns the way to recompute with the given name.
func ParseRecompute(name string) (Recompute, error) {
	ways := []Recompute{None, Attention, Half, Full}
	if slices.Contains(ways, Recompute(name)) {
		return Recompute(name), nil
	}
	var names []string
	for _, w := range ways {
		names = append(names, string(w))
	}
	hint := ""
	if near := nearest.To(strings.ToLower(name), names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return None, fmt.Errorf("--recompute %s: %suse none, attention, half or full", name, hint)
}
