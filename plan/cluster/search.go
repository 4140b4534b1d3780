package cluster

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/hardware"
	"anneal/internal/nearest"
	"anneal/internal/units"
	"anneal/program"
)

// A Found is a mesh that fits, with its time, memory and cost.
type Found struct {
	Run    *Run
	Mesh   Mesh
	Step   *Step
	Memory []Memory // by stage
	Cost   float64  // device hours for 10⁹ tokens
	Room   float64  // share of a device's memory that is left
	Count  int      // devices
}

// A Rejected is a mesh that was refused or left out, and the reason.
type Rejected struct {
	Mesh   Mesh   `json:"mesh"`
	Change string `json:"change,omitempty"` // of a neighbour of the best mesh: the axis that differs, such as tp=16
	Reason string `json:"reason"`
	Count  int    `json:"count,omitempty"` // meshes refused or left out for the same kind of reason; this one came nearest
	need   float64
}

// A Search is the result of Find.
type Search struct {
	Tried      int
	Best       *Found
	Front      []*Found   // every other mesh is slower than one of these, and not clearly better in cost or headroom
	Refused    []Rejected // one of each kind of reason
	Neighbours []Rejected // of the best
	Advice     string     // why there is no best
}

// finalists is how many of the meshes that look fastest are simulated, beside slower ones with more headroom.
const finalists = 48

// clearly is by how much, as a share of a device's memory, headroom must be larger to count.
const clearly = 0.05

// Find returns the best meshes for a run. The mesh of the run gives the precision and the fixed axes. Find tries the
// whole cluster and parts of it; every split of these into powers of two and into numbers that divide a node, the
// layers or the experts; and for each split all ways to shard and recompute. It prunes meshes by divisibility and
// memory, ranks the rest by a closed form of their schedule, simulates the first of them, and goes on to a neighbour of
// the best as long as one is faster.
func Find(run Run, fixed Axes) (*Search, error) {
	x := &explorer{fixed: fixed, refused: map[string]*Rejected{}, cuts: map[int][][2]int{},
		made: map[listKey][][]program.Instr{}}
	for _, devices := range sizes(run.Cluster) {
		r := run
		r.Cluster = run.Cluster.Part(devices)
		if err := x.explore(&r); err != nil {
			return nil, err
		}
	}
	s := &Search{Tried: x.tried}
	for _, why := range x.refused {
		s.Refused = append(s.Refused, *why)
	}
	slices.SortFunc(s.Refused, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	if len(x.fit) == 0 {
		s.Advice = x.advice(&run)
		return s, nil
	}
	slices.SortStableFunc(x.fit, byTime)
	s.Best = x.fit[0]
	for faster := s.Best; faster != nil; { // the closed form may have ranked a neighbour too low
		s.Best = faster
		s.Neighbours, faster = x.neighbours(s.Best)
	}
	if s.Best != x.fit[0] {
		x.fit = append([]*Found{s.Best}, x.fit...)
	}
	for _, f := range x.fit {
		if !slices.ContainsFunc(s.Front, func(g *Found) bool { return g.dominates(f) }) {
			s.Front = append(s.Front, f)
		}
	}
	return s, nil
}

// sizes returns the numbers of devices that are tried: the whole cluster, a half, a quarter and an eighth, and as many
// whole nodes as are a multiple of 2, 4 or 8, because a number of nodes that hardly divides may be slower than fewer.
func sizes(c *hardware.Cluster) []int {
	list := []int{c.Devices}
	for n := 2; n <= 8; n *= 2 {
		if c.Devices%n == 0 {
			list = append(list, c.Devices/n)
		}
		if whole := c.Devices / c.PerNode / n * n * c.PerNode; whole > 0 {
			list = append(list, whole)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return slices.Compact(list)
}

func byTime(a, b *Found) int { return cmp.Compare(a.Step.Seconds, b.Step.Seconds) }

// dominates reports whether a mesh that is at least as fast is also about as good in cost and headroom.
func (f *Found) dominates(g *Found) bool { return f.Cost <= 1.02*g.Cost && f.Room >= g.Room-clearly }

// An explorer tries meshes.
type explorer struct {
	fixed   Axes
	tried   int
	fit     []*Found             // simulated
	refused map[string]*Rejected // by kind of reason, the mesh that came nearest to fitting
	cuts    map[int][][2]int     // of the layers, by number of parts
	made    map[listKey][][]program.Instr
}

type listKey struct {
	schedule       string
	stages, micros int
}

// lists makes the lists of each schedule only once, because many meshes share them.
func (x *explorer) lists(schedule string, stages, micros int) ([][]program.Instr, error) {
	key := listKey{schedule, stages, micros}
	if x.made[key] == nil {
		lists, err := lateLists(schedule, stages, micros)
		if err != nil {
			return nil, err
		}
		x.made[key] = lists
	}
	return x.made[key], nil
}

// explore tries the meshes of one cluster.
func (x *explorer) explore(r *Run) error {
	var fit []*Found
	for _, split := range x.fixed.split(r) {
		for _, m := range x.fixed.variants(r, split) {
			fit = x.sizes(fit, r, m)
		}
	}
	slices.SortStableFunc(fit, byTime)
	room := 0.0
	for i, f := range fit {
		if i >= finalists && f.Room <= room+clearly {
			x.refuse("slower", &Rejected{Mesh: f.Mesh, Reason: fmt.Sprintf("fits, but takes longer: about %.3f s",
				f.Step.Seconds), need: f.Step.Seconds})
			continue
		}
		room = max(room, f.Room)
		if err := x.simulate(f); err != nil {
			return err
		}
		if f.fits() {
			x.fit = append(x.fit, f)
		} else {
			x.refuse(f.kind(), f.rejected())
		}
	}
	return nil
}

// sizes adds the sizes of micro-batches of a mesh that fit. If a size does not fit, larger ones do not either.
func (x *explorer) sizes(fit []*Found, r *Run, m Mesh) []*Found {
	for _, m.Micro = range x.fixed.micros(r, m) {
		x.tried++
		y := *r
		y.Mesh = m
		f, kind, why := x.consider(&y)
		if f == nil {
			x.refuse(kind, why)
			break
		}
		fit = append(fit, f)
	}
	return fit
}

func (x *explorer) refuse(kind string, why *Rejected) {
	old := x.refused[kind]
	if old == nil {
		x.refused[kind] = why
		why.Count = 1
		return
	}
	count := old.Count + 1
	if why.need < old.need {
		*old = *why
	}
	old.Count = count
}

// consider returns a mesh that fits, ranked by a closed form, or the reason and the kind of reason why it is refused.
func (x *explorer) consider(r *Run) (*Found, string, *Rejected) {
	if err := r.Check(); err != nil {
		reason := strings.ReplaceAll(err.Error(), "\n", "; ")
		return nil, "divides", &Rejected{Mesh: r.Mesh, Reason: reason, need: float64(len(reason))}
	}
	n := r.Mesh.Pipeline * max(r.Mesh.Chunks, 1)
	if x.cuts[n] == nil {
		x.cuts[n] = r.parts()
	}
	c := r.newCandidate(x.cuts[n])
	f := &Found{Run: r, Mesh: r.Mesh, Memory: r.Memory(&Step{Stages: c.stages}), Count: r.Cluster.Devices}
	if !f.fits() {
		return nil, f.kind(), f.rejected()
	}
	f.Step = c.quick()
	f.settle()
	return f, "", nil
}

// advice explains why no mesh is left.
func (x *explorer) advice(r *Run) string {
	memory := false
	for kind := range x.refused {
		memory = memory || kind != "divides"
	}
	if why := x.refused["divides"]; !memory && why != nil {
		return fmt.Sprintf("no mesh is possible: %s: %s", why.Mesh, why.Reason)
	}
	if x.tried == 0 {
		return fmt.Sprintf("no mesh is possible: %s does not divide the %d devices of %s, their half, quarter or "+
			"eighth", x.fixed.describe(r.Mesh), r.Cluster.Devices, r.Cluster)
	}
	why := r.tooLarge()
	if why == "" {
		why = fmt.Sprintf("%s, but activations do not fit beside it: try a shorter --context or more devices",
			r.leastState())
		if len(x.fixed) > 0 {
			why += ", or leave out some of the given axes"
		}
	}
	return "no mesh fits: " + why
}

func (f *Found) fullest() (bytes float64, stage int) {
	for i, m := range f.Memory {
		if m.Total() > bytes {
			bytes, stage = m.Total(), i
		}
	}
	return bytes, stage
}

func (f *Found) fits() bool {
	bytes, _ := f.fullest()
	return bytes <= Usable*f.Run.Cluster.Accelerator.Memory
}

// excess describes the stage that does not fit.
func (f *Found) excess() string {
	bytes, stage := f.fullest()
	limit := Usable * f.Run.Cluster.Accelerator.Memory
	digits := 2
	for bytes > limit && (bytes-limit)/gibi < math.Pow10(-digits) {
		digits++
	}
	return fmt.Sprintf("stage %d needs %.*f GiB of %.*f GiB", stage, digits, bytes/gibi, digits, limit/gibi)
}

// kind returns the kind of reason that a mesh that does not fit counts under.
func (f *Found) kind() string { return fmt.Sprint("memory ", f.Mesh.Recompute) }

func (f *Found) rejected() *Rejected {
	bytes, _ := f.fullest()
	return &Rejected{Mesh: f.Mesh, Reason: f.excess(), need: bytes}
}

// settle computes the figures that depend on time and memory.
func (f *Found) settle() {
	fullest, _ := f.fullest()
	f.Room = 1 - fullest/f.Run.Cluster.Accelerator.Memory
	f.Cost = 1e9 / f.Step.Tokens / 3600 * float64(f.Count)
}

// simulate replaces the closed form by the simulation of the lists.
func (x *explorer) simulate(f *Found) error {
	step, err := f.Run.shortened(x.lists)
	if err != nil {
		return err
	}
	f.Step, f.Memory = step, f.Run.Memory(step)
	f.settle()
	return nil
}

// TooSmall returns the arithmetic that shows that a model does not fit, or advice if its state would fit.
func (r *Run) TooSmall() string {
	return cmp.Or(r.tooLarge(), fmt.Sprintf("The mesh is at fault: %s. --search looks for one whose activations "+
		"fit, too", r.leastState()))
}

// stateBytes is the bytes per parameter with AdamW and ZeRO 3: 4 for its gradient, 12 for the FP32 weight and the
// moments.
const stateBytes = 16

func (r *Run) stateSize() float64 {
	all, _ := r.Shape.Parameters()
	return stateBytes * all
}

// leastState describes the memory of the state with the most sharding.
func (r *Run) leastState() string {
	n := r.Cluster.Devices
	return fmt.Sprintf("with zero=3, the state of %s would take %.1f GiB on each of %s", r.Shape.Name,
		r.stateSize()/gibi/float64(n), units.Count(n, "device"))
}

// tooLarge returns the arithmetic that shows that the state alone does not fit on the devices; "" if it does.
func (r *Run) tooLarge() string {
	state, device, n := r.stateSize(), r.Cluster.Accelerator.Memory, r.Cluster.Devices
	room := Usable*device - reserved
	if room <= 0 {
		return fmt.Sprintf("a device has %.1f GiB, of which %.0f %% can be used, and drivers and libraries take %.0f "+
			"GiB of these: there is no room for a model", device/gibi, 100*Usable, float64(reserved)/gibi)
	}
	least := math.Floor(state/room) + 1
	if least <= float64(n) {
		return ""
	}
	each := ""
	if n > 1 {
		each = fmt.Sprintf(", which are %.0f GiB on each of %d devices", state/gibi/float64(n), n)
	}
	return fmt.Sprintf("%s keeps %d bytes for each of %.1fB parameters even with zero=3 (AdamW: gradient 4, FP32 "+
		"weight and moments 12): %.0f GiB%s; a device has %.0f GiB. %.0f devices are the least for the state alone; "+
		"activations need more", r.Shape.Name, stateBytes, state/stateBytes/1e9, state/gibi, each, device/gibi, least)
}

// Precise returns the precision with the given name.
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
