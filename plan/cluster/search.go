package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"anneal/hardware"
	"anneal/internal/nearest"
)

// A Found mesh is one that fits, with what it takes.
type Found struct {
	Run    *Run     `json:"-"`
	Mesh   Mesh     `json:"mesh"`
	Step   *Step    `json:"step"`
	Memory []Memory `json:"memory"` // by stage
	Cost   float64  `json:"device_hours_per_gigatoken"`
	Room   float64  `json:"headroom"` // share of a device's memory that is left
	Count  int      `json:"devices"`
}

// A Rejected mesh and why.
type Rejected struct {
	Mesh   Mesh   `json:"mesh"`
	Reason string `json:"reason"`
	need   float64
}

// A Search is what was found.
type Search struct {
	Tried    int        `json:"tried"`
	Best     *Found     `json:"best,omitempty"`
	Front    []*Found   `json:"front"`    // the others are worse in time, cost and headroom than one of these
	Rejected []Rejected `json:"rejected"` // one of each kind of reason, and the neighbours of the best
	Advice   string     `json:"advice,omitempty"`
}

// finalists is how many of the meshes that look fastest are simulated.
const finalists = 24

// Find returns the best meshes for a run; its mesh gives the precision. It tries all of the cluster, a half, a quarter
// and an eighth of it, every split of these into powers of two and into what divides the layers, and for each all ways
// to shard and recompute. Meshes are pruned by divisibility and memory, ranked by a closed form of their schedule, and
// the first are simulated.
func Find(run Run) (*Search, error) {
	s := &Search{}
	kinds := map[string]*Rejected{}
	var list []*Found
	for parts := 1; parts <= 8 && run.Cluster.Devices%parts == 0; parts *= 2 {
		r := run
		c := *run.Cluster
		c.Devices /= parts
		r.Cluster = &c
		var fit []*Found
		for _, m := range candidates(&r) {
			s.Tried++
			x := r
			x.Mesh = m
			f, kind, why := x.consider()
			if f != nil {
				fit = append(fit, f)
				continue
			}
			if old := kinds[kind]; old == nil || why.need < old.need {
				kinds[kind] = why
			}
		}
		slices.SortFunc(fit, func(a, b *Found) int { return cmp.Compare(a.Step.Seconds, b.Step.Seconds) })
		for _, f := range fit[:min(finalists, len(fit))] {
			if err := f.simulate(); err != nil {
				return nil, err
			}
			list = append(list, f)
		}
	}
	for _, why := range kinds {
		s.Rejected = append(s.Rejected, *why)
	}
	slices.SortFunc(s.Rejected, func(a, b Rejected) int { return cmp.Compare(a.Reason, b.Reason) })
	if len(list) == 0 {
		s.Advice = run.TooSmall()
		return s, nil
	}
	slices.SortFunc(list, func(a, b *Found) int { return cmp.Compare(a.Step.Seconds, b.Step.Seconds) })
	s.Best = list[0]
	for _, f := range list {
		if !slices.ContainsFunc(s.Front, func(g *Found) bool { return g.dominates(f) }) {
			s.Front = append(s.Front, f)
		}
	}
	s.Rejected = append(s.Rejected, s.Best.neighbours()...)
	return s, nil
}

// dominates says whether a mesh that is at least as fast is about as good in cost and headroom too.
func (f *Found) dominates(g *Found) bool { return f.Cost <= 1.02*g.Cost && f.Room >= g.Room-0.05 }

// TooSmall is the arithmetic by which a model does not fit.
func (r *Run) TooSmall() string {
	all, _ := r.Shape.Parameters()
	const each = 18 // 2 weight, 4 gradient, 12 FP32 weight and moments
	state, device := each*all, r.Cluster.Accelerator.Memory
	least := int(state/(Usable*device-reserved)) + 1
	return fmt.Sprintf("%s keeps %d bytes for each of %.1fB parameters with AdamW (weight 2, gradient 4, FP32 "+
		"weight and moments 12): %.0f GB, which are %.0f GB on each of %d devices even with zero=3;"+
		" a device has %.0f GB. "+
		"%d devices are the least for the state alone; activations need more", r.Shape.Name, each, all/1e9, state/1e9,
		state/1e9/float64(r.Cluster.Devices), r.Cluster.Devices, device/1e9, least)
}

// candidates returns the meshes to try on a cluster.
func candidates(r *Run) (list []Mesh) {
	s, devices := &r.Shape, r.Cluster.Devices
	for tensor := 1; tensor <= min(16, devices, r.Cluster.Levels[0].Devices); tensor *= 2 {
		for pipeline := 1; pipeline <= min(s.Layers, devices/tensor); pipeline++ {
			even := s.Layers%pipeline <= pipeline/2 || pipeline&(pipeline-1) == 0
			if devices%(tensor*pipeline) != 0 || !even {
				continue
			}
			for context := 1; context <= max(1, s.Context/4096); context *= 2 {
				if devices%(tensor*pipeline*context) != 0 {
					continue
				}
				m := Mesh{Tensor: tensor, Pipeline: pipeline, Context: context, Sequence: tensor > 1,
					Data: devices / (tensor * pipeline * context), Precision: r.Mesh.Precision}
				list = append(list, variants(r, m)...)
			}
		}
	}
	return list
}

// variants returns a mesh with all ways to cut layers, shard, recompute and spread experts.
func variants(r *Run, m Mesh) (list []Mesh) {
	layers := (r.Shape.Layers + m.Pipeline - 1) / m.Pipeline
	for _, chunks := range []int{1, 2, 4, 8} {
		if chunks > 1 && (m.Pipeline == 1 || layers%chunks != 0) {
			continue
		}
		for expert := 1; expert <= max(1, min(r.Shape.Experts, m.Data*m.Context*m.Tensor)); expert *= 4 {
			for _, zero := range m.stages(expert) {
				for micro := 1; micro <= 8; micro *= 2 {
					for _, again := range []Recompute{None, Half, Full} {
						x := m
						x.SetChunks(chunks)
						x.Expert, x.Zero, x.Micro, x.Recompute = expert, zero, micro, again
						list = append(list, x)
					}
				}
			}
		}
	}
	return list
}

// stages returns the stages of ZeRO to try. Without copies of a weight there is nothing to shard. 0 sends more bytes
// than 1 in fewer messages, which is faster only for models too small for a pipeline. In a pipeline, 3 would gather
// the weights again for each of many micro-batches, for memory that the pipeline has divided already.
func (m Mesh) stages(expert int) []int {
	m.Expert = expert
	switch {
	case m.dataGroup().Size == 1 && m.expertDataGroup().Size == 1:
		return []int{0}
	case m.dataGroup().Size == 1:
		return []int{0, 1}
	case m.Pipeline > 1:
		return []int{1, 2}
	default:
		return []int{0, 1, 2, 3}
	}
}

// consider returns a mesh that fits, ranked by a closed form, or why it is refused and what kind of reason that is.
func (r *Run) consider() (*Found, string, *Rejected) {
	if err := r.Check(); err != nil {
		return nil, "divides", &Rejected{Mesh: r.Mesh, Reason: firstLine(err)}
	}
	step := r.quick()
	f := &Found{Run: r, Mesh: r.Mesh, Step: step, Memory: r.Memory(step), Count: r.Cluster.Devices}
	device := r.Cluster.Accelerator.Memory
	fullest, stage := f.fullest()
	if fullest > Usable*device {
		why := fmt.Sprintf("stage %d needs %.1f GB of %.1f GB", stage, fullest/1e9, Usable*device/1e9)
		return nil, fmt.Sprint("memory ", r.Mesh.Recompute), &Rejected{r.Mesh, why, fullest}
	}
	f.settle()
	return f, "", nil
}

func firstLine(err error) string {
	for i, c := range err.Error() {
		if c == '\n' {
			return err.Error()[:i]
		}
	}
	return err.Error()
}

func (f *Found) fullest() (bytes float64, stage int) {
	for i, m := range f.Memory {
		if m.Total() > bytes {
			bytes, stage = m.Total(), i
		}
	}
	return bytes, stage
}

// settle computes what follows from time and memory.
func (f *Found) settle() {
	fullest, _ := f.fullest()
	f.Room = 1 - fullest/f.Run.Cluster.Accelerator.Memory
	f.Cost = 1e9 / f.Step.Tokens / 3600 * float64(f.Count)
}

// simulate replaces the closed form by the simulation of the lists.
func (f *Found) simulate() error {
	step, err := f.Run.Shortened()
	if err != nil {
		return err
	}
	f.Step, f.Memory = step, f.Run.Memory(step)
	f.settle()
	return nil
}

// quick returns a step by the closed form of its schedule: micro-batches of the slowest stage follow each other, and
// the pipeline fills and drains in chunks.
func (r *Run) quick() *Step {
	a, m := newMachine(r.Cluster), r.Mesh
	parts := r.parts()
	costs := r.partCosts(parts, a)
	s, chunks := &Step{}, max(m.Chunks, 1)
	slowest, all, micros := 0.0, 0.0, r.Micros()
	for stage := range m.Pipeline {
		st, sum := Stage{Peak: min(m.Pipeline-stage, micros)}, 0.0
		if chunks > 1 {
			st.Peak = min(2*(m.Pipeline-stage-1)+(chunks-1)*m.Pipeline+1, micros*chunks)
		}
		for v := range chunks {
			x := costs[v*m.Pipeline+stage]
			sum += x.forward + x.ends + x.input + x.weights + r.again(x) + x.tensorForward + x.tensorBackward +
				x.otherForward + x.otherBackward
			st.Parts = append(st.Parts, parts[v*m.Pipeline+stage])
		}
		slowest, all = max(slowest, sum), all+sum
		s.Stages = append(s.Stages, st)
	}
	fill := (all - all/float64(m.Pipeline)) / float64(chunks)
	r.account(s, costs, float64(micros)*slowest+fill+2*float64(m.Pipeline-1)*r.hop(), a)
	return s
}

// neighbours says of each mesh that differs from the best in one way what it costs, or why it does not fit.
func (f *Found) neighbours() (list []Rejected) {
	try := func(change func(m *Mesh)) {
		r := *f.Run
		change(&r.Mesh)
		if r.Mesh.Pipeline == 1 {
			r.Mesh.SetChunks(1)
		}
		if r.Mesh == f.Mesh || r.Mesh.Data < 1 || r.Mesh.Micro < 1 || r.Mesh.Tensor < 1 || r.Mesh.Pipeline < 1 ||
			r.Mesh.Chunks < 1 {
			return
		}
		g, _, why := r.consider()
		if g == nil {
			list = append(list, *why)
			return
		}
		if g.simulate() == nil {
			more := g.Step.Seconds/f.Step.Seconds - 1
			p, q := g.Step.Phases, f.Step.Phases
			why := fmt.Sprintf("%+.1f %% time: %s", 100*more, difference(p, q))
			list = append(list, Rejected{Mesh: g.Mesh, Reason: why})
		}
	}
	try(func(m *Mesh) { m.Tensor, m.Data, m.Sequence = m.Tensor*2, m.Data/2, true })
	try(func(m *Mesh) { m.Tensor, m.Data, m.Sequence = m.Tensor/2, m.Data*2, m.Tensor > 2 })
	try(func(m *Mesh) { m.Pipeline, m.Data = m.Pipeline*2, m.Data/2 })
	try(func(m *Mesh) { m.Pipeline, m.Data = m.Pipeline/2, m.Data*2 })
	try(func(m *Mesh) { m.SetChunks(m.Chunks * 2) })
	try(func(m *Mesh) { m.SetChunks(m.Chunks / 2) })
	try(func(m *Mesh) { m.Micro *= 2 })
	try(func(m *Mesh) { m.Micro /= 2 })
	try(func(m *Mesh) { m.Recompute = None })
	try(func(m *Mesh) { m.Recompute = Full })
	for _, zero := range f.Mesh.stages(f.Mesh.Expert) {
		try(func(m *Mesh) { m.Zero = zero })
	}
	return list
}

// difference names the phase that changes most.
func difference(p, q Phases) string {
	changes := []struct {
		name string
		d    float64
	}{
		{"products", p.Forward + p.Backward - q.Forward - q.Backward}, {"recomputing", p.Recompute - q.Recompute},
		{"messages of tensor parallelism", p.Tensor - q.Tensor}, {"messages of layers", p.Other - q.Other},
		{"gradients and weights on their way", p.Data - q.Data}, {"the optimizer", p.Optimizer - q.Optimizer},
		{"idle stages", p.Idle - q.Idle},
	}
	slices.SortStableFunc(changes, func(a, b struct {
		name string
		d    float64
	}) int {
		return cmp.Compare(max(b.d, -b.d), max(a.d, -a.d))
	})
	return fmt.Sprintf("%s %+.2f s", changes[0].name, changes[0].d)
}

// Precise says which precision a name is.
func Precise(name string) (hardware.Precision, error) {
	if p := hardware.Precision(name); slices.Contains(hardware.Precisions, p) {
		return p, nil
	}
	var names []string
	for _, p := range hardware.Precisions {
		names = append(names, string(p))
	}
	hint := ""
	if near := nearest.To(name, names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return "", fmt.Errorf("there is no precision %q for products: %suse bf16, fp16, fp8 or fp4", name, hint)
}
