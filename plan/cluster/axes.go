package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Axes are the axes of a search that keep the value of the run's mesh: dp, tp, pp, vpp, cp, ep, zero, micro, recompute.
type Axes map[string]bool

// values returns the values to try on an axis: the one that it keeps, or the usual ones.
func (a Axes) values(key string, kept int, usual []int) []int {
	if a[key] {
		return []int{kept}
	}
	return usual
}

// powers returns the powers of two up to most, at least 1.
func powers(most int) (list []int) {
	for n := 1; n <= max(1, most); n *= 2 {
		list = append(list, n)
	}
	return list
}

// mostTensor is the largest number of ranks of tensor parallelism that is tried.
const mostTensor = 16

// tensors returns the numbers of ranks that may share every layer: powers of two, and others that divide a node.
func tensors(s *Shape, node int) (list []int) {
	for n := 1; n <= min(mostTensor, node); n++ {
		if s.sharedBy(n) && (node%n == 0 || n&(n-1) == 0) {
			list = append(list, n)
		}
	}
	return list
}

// split returns the ways to cut a cluster into tensor, pipeline, context and data parallelism.
func (a Axes) split(r *Run) (list []Mesh) {
	s, devices, kept := &r.Shape, r.Cluster.Devices, r.Mesh
	inner := cmp.Or(r.Cluster.Levels[0].Devices, devices) // 0: the only level joins all
	for _, tensor := range a.values("tp", kept.Tensor, tensors(s, min(devices, inner))) {
		for _, pipeline := range a.values("pp", kept.Pipeline, pipelines(s.Layers, devices/tensor)) {
			for _, context := range a.values("cp", kept.Context, powers(s.Context/4096)) {
				data := devices / tensor / pipeline / context
				if data < 1 || data*tensor*pipeline*context != devices || a["dp"] && data != kept.Data {
					continue
				}
				list = append(list, Mesh{Tensor: tensor, Pipeline: pipeline, Context: context, Data: data,
					Sequence: tensor > 1, Precision: kept.Precision})
			}
		}
	}
	return list
}

// pipelines returns numbers of stages that cut the layers about evenly.
func pipelines(layers, devices int) (list []int) {
	for p := 1; p <= min(layers, devices); p++ {
		if layers%p <= p/2 || p&(p-1) == 0 {
			list = append(list, p)
		}
	}
	return list
}

// variants returns a split with all ways to cut layers, shard, recompute and spread experts. It does not vary the size
// of micro-batches.
func (a Axes) variants(r *Run, m Mesh) (list []Mesh) {
	layers := (r.Shape.Layers + m.Pipeline - 1) / m.Pipeline
	for _, chunks := range a.values("vpp", r.Mesh.Chunks, chunksOf(layers)) {
		if chunks > 1 && m.Pipeline == 1 && !a["vpp"] {
			continue
		}
		for _, expert := range a.values("ep", r.Mesh.Expert, expertRanks(r, m)) {
			for _, zero := range a.values("zero", r.Mesh.Zero, m.stages(expert)) {
				for _, again := range a.recomputes(r) {
					x := m
					x.SetChunks(chunks)
					x.Expert, x.Zero, x.Recompute = expert, zero, again
					list = append(list, x)
				}
			}
		}
	}
	return list
}

// expertRanks returns the numbers of ranks that may share the experts.
func expertRanks(r *Run, m Mesh) []int {
	return divisors(max(1, r.Shape.Experts), m.Data*m.Context*m.Tensor)
}

func (a Axes) recomputes(r *Run) []Recompute {
	switch {
	case a["recompute"]:
		return []Recompute{r.Mesh.Recompute}
	case r.Stack.Attention == "unfused":
		return []Recompute{None, Attention, Half, Full}
	}
	return []Recompute{None, Half, Full}
}

// mostChunks is the largest number of chunks of layers per stage that is tried.
const mostChunks = 20

// chunksOf returns the numbers of chunks to try for the layers of a stage: those that divide them, and powers of two,
// whose chunks differ in size.
func chunksOf(layers int) []int {
	list := divisors(layers, mostChunks)
	for n := 2; n <= min(layers, mostChunks); n *= 2 {
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// divisors returns the divisors of n up to most.
func divisors(n, most int) (list []int) {
	for d := 1; d <= min(n, most); d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}

// mostMicro is the largest micro-batch that is tried, in sequences.
const mostMicro = 128

// micros returns the sizes of micro-batches to try, in ascending order: those that divide a rank's part of the batch.
func (a Axes) micros(r *Run, m Mesh) (list []int) {
	if a["micro"] {
		return []int{r.Mesh.Micro}
	}
	if r.Batch < m.Data {
		return []int{1} // the batch is too small; the check of the mesh reports it
	}
	return divisors(r.Batch/m.Data, mostMicro)
}

// stages returns the stages of ZeRO to try. Without copies of a weight there is nothing to shard. 0 sends more bytes
// than 1 in fewer messages, which is faster only for models too small for a pipeline. In a pipeline, 3 gathers the
// weights again for each of many micro-batches, which pays where its memory saves recomputation or more stages.
func (m Mesh) stages(expert int) []int {
	m.Expert = expert
	switch {
	case m.dataGroup().Size == 1 && m.expertDataGroup().Size == 1:
		return []int{0}
	case m.dataGroup().Size == 1:
		return []int{0, 1}
	case m.Pipeline > 1:
		return []int{1, 2, 3}
	default:
		return []int{0, 1, 2, 3}
	}
}

// describe writes the axes that split the devices, in the form that ParseMesh reads.
func (a Axes) describe(m Mesh) string {
	var list []string
	for _, x := range m.sizes() {
		if a[x.key] {
			list = append(list, fmt.Sprintf("%s=%d", x.key, x.n))
		}
	}
	return strings.Join(list, ",")
}

// next returns the next larger or smaller size of micro-batches for a mesh; 0 if there is none.
func (a Axes) next(r *Run, by int) int {
	list := a.micros(r, r.Mesh)
	i := slices.Index(list, r.Mesh.Micro) + by
	if i < 0 || i >= len(list) {
		return 0
	}
	return list[i]
}
