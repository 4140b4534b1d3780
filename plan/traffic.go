package plan

import (
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/parallel"
	"anneal/tensor"
	"anneal/train"
)

// The bytes that a rank sends in a step, axis by axis. M is the number of its micro-batches, N the number of tokens in
// one, D the width of the model, t the number of ranks of tensor parallelism, c that of context parallelism, and n the
// number of ranks whose gradients are added.
//
//	tensor    M · for each branch (t−1)/t·N·D numbers, twice forward and three times back; once each way for the
//	          embedding and for what the head reads (autograd/tensor_parallel.go)
//	context   M · for each layer keys and values to c−1 ranks (autograd/ring.go), or heads (autograd/ulysses.go)
//	pipeline  M · N·D numbers for each neighbour of a chunk of layers: the stream forward, its gradient back
//	data      (n−1)/n of the rank's part of the model, by stage of ZeRO (zero.go); a tied table's sums beside
//
// The first two are counted where a micro-batch is measured (train.Footprint.Sent), so they hold for every family,
// pattern and precision. The messages with losses and norms, a few KiB per step, do not count.

// An Axes holds the bytes that a rank sends in a step along each axis of the mesh.
type Axes struct {
	Tensor    int64 `json:"tensor_bytes"`
	Context   int64 `json:"context_bytes"`
	Pipeline  int64 `json:"pipeline_bytes"`
	Gradients int64 `json:"gradient_bytes"` // data parallelism, mean over the ranks of the stage
	Weights   int64 `json:"weight_bytes"`
}

// axes returns the bytes that the rank of a footprint sends if it has the largest number of micro-batches.
func axes(cfg *config.Config, f *train.Footprint, at parallel.Place) (Axes, error) {
	_, _, stages := cfg.Parallel.Mesh()
	micro := int64(microBatches(cfg, cfg.Parallel.Ranks/cfg.Parallel.Shared()))
	t, err := trafficOf(cfg, f, at.Stage)
	if err != nil {
		return Axes{}, err
	}
	s := t.stage(cfg.Parallel.Zero, f)
	return Axes{
		Tensor: micro * f.Sent.Tensor, Context: micro * f.Sent.Context,
		Pipeline:  micro * f.Stream * int64(messages(at.Stage, stages, max(len(f.Here.Chunks), 1))),
		Gradients: s.SentGradients, Weights: s.SentWeights,
	}, nil
}

// messages returns how many messages a stage of a pipeline sends for a micro-batch: each of its chunks sends one
// forward, unless it ends the model, and one back, unless it begins the model.
func messages(stage, stages, chunks int) int {
	n := 2 * chunks
	if stage == 0 {
		n--
	}
	if stage == stages-1 {
		n--
	}
	return n
}

// traffic holds the bytes that a rank would send in a step to a very large group.
type traffic struct {
	groups    int     // groups that step separately, or 1
	ranks     int     // of a group
	met       float64 // weights that a group sends to the others when they synchronise, mean over steps
	sums      int     // sums of micro-batches that a rank sends, at most
	gradients float64 // bytes of one sum in the format of the wire
	totals    float64 // gradients in the format in which they are added
	tied      float64 // sums of a tied table that two stages have
	published float64 // weights in the format that computing reads, once per step
	gathered  float64 // the same at stage 3
}

// trafficOf returns the traffic of a rank of a stage of the pipeline.
func trafficOf(cfg *config.Config, f *train.Footprint, stage int) (t traffic, err error) {
	m := model.DeclarePart(f.Model, f.Here)
	per := cfg.Train.MicroBatch * cfg.Model.Context
	t.groups = max(cfg.Parallel.Outer.Groups, 1)
	_, context, stages := cfg.Parallel.Mesh()
	replicas := cfg.Parallel.Ranks / t.groups / cfg.Parallel.Shared()
	t.ranks = replicas * context
	micro, block := cfg.Train.BatchTokens/per/t.groups, cfg.Parallel.SumBlock
	t.sums = (micro + block*replicas - 1) / (block * replicas)
	var units []float64
	for u, unit := range m.UnitParams() {
		if len(unit) > 0 && u == 0 && stages > 1 && cfg.Model.TieEmbeddings {
			t.tied = float64(unit[0].Region.Len() * f.Policy.Master.Size())
		}
		read := 0.
		for _, p := range unit {
			n := float64(p.Region.Len())
			t.gradients += n * wireBytes(cfg.Parallel.Wire, f.Policy.Master)
			t.totals += n * float64(f.Policy.Master.Size())
			read += n * float64(train.ReadFormat(cfg, f.Policy, p).Size())
			master := model.Memory{DType: f.Policy.Master, Weight: f.Policy.Weight}.WeightOf(p.Role)
			t.met += n * float64(master.Size()) * float64(t.groups-1) / float64(cfg.Parallel.Outer.Every)
		}
		t.published += read
		units = append(units, read)
	}
	t.gathered, err = gathered(cfg, m, stage, units, min(t.sums*block, micro))
	return t, err
}

// stage returns the bytes that a rank keeps and sends at a stage of ZeRO.
func (t traffic) stage(zero int, f *train.Footprint) Stage {
	s := Stage{
		Zero: zero, Weights: f.Bytes(train.Parameters) - f.Tables + f.Bytes(parallel.MasterWeights),
		Gradients: f.Bytes(train.Gradients), Total: f.Total(),
		State: f.Bytes(train.OptimizerState) + f.Bytes(train.OuterState),
	}
	for _, name := range []string{
		parallel.Fold, parallel.Slots, parallel.Received, parallel.Gathered, train.ReceivedWeights,
	} {
		s.Transit += f.Bytes(name)
	}
	others, met := float64(t.ranks-1)/float64(t.ranks), t.met/float64(t.ranks)
	gradients, weights := float64(t.sums)*t.gradients, t.published
	switch zero {
	case 0:
		gradients, weights, met = gradients+t.totals, 0, t.met
	case 3:
		weights = t.gathered
	}
	s.SentGradients, s.SentWeights = int64(gradients*others+t.tied/float64(t.ranks)+0.5), int64(weights*others+met+0.5)
	return s
}

// wireBytes returns the size of a gradient's element in the format of the wire. int8 has a scale for every block.
func wireBytes(wire string, gradient tensor.DType) float64 {
	switch wire {
	case "bf16":
		return 2
	case "int8":
		return 1 + float64(gradient.Size())/device.Block
	}
	return float64(gradient.Size())
}
