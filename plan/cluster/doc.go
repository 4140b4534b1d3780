// Package cluster predicts large runs on a cluster of accelerators: the time of a step and its phases, utilisation,
// memory by stage and cost, from the shape of a transformer, a mesh and hardware.
//
//   - shape.go: a transformer; recipe.go: well-known ones by name; config.go: models of this program
//   - mesh.go: how ranks share it; run.go: a run, its defaults, and what is refused
//   - kernel.go: how long one kernel takes; layer.go: the kernels of a layer, of the embedding and of the head
//   - exchange.go: what ranks send each other
//   - step.go: the time of a step, by simulating the instruction lists of package program
//   - memory.go: what each stage keeps
//   - search.go: the best meshes; axes.go: what it tries; quick.go: a closed form of a step; neighbours.go: why others
//     are not the best
//   - perfetto.go: the timeline of a step as a trace
//
// A time is a roofline of each kernel, an α-β model of each level of the network, and a simulated schedule. Nothing is
// fitted to a run; three constants belong to each kind of accelerator (hardware.Efficiency). It imports hardware, model
// and program. Start reading at step.go.
package cluster
