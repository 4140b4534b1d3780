package config

import (
	"errors"
	"fmt"

	"anneal/model"
	"anneal/precision"
	"anneal/program"
)

// mesh checks the axes of the mesh of ranks other than data parallelism, as far as shapes decide.
func (k *checker) mesh() {
	p, m := &k.c.Parallel, &k.c.Model
	tensor := k.between("parallel.tensor", p.Tensor, 1, 1<<10)
	context := k.between("parallel.context", p.Context, 1, 1<<10)
	pipeline := k.between("parallel.pipeline", p.Pipeline, 1, 1<<10)
	if !tensor || !context || !pipeline || p.Shared() == 1 {
		return
	}
	if n := p.Shared(); p.Ranks%n != 0 {
		k.fault("parallel.ranks", fmt.Sprintf("parallel.ranks = %d", (p.Ranks/n+1)*n),
			"parallel.ranks = %d is not a multiple of parallel.tensor · parallel.context · parallel.pipeline = %d",
			p.Ranks, n)
	}
	shape := *m
	if shape.Vocab == 0 { // it follows from the data, and is checked later
		shape.Vocab = p.Tensor
	}
	k.cut(shape.CheckTensors(p.Tensor))
	k.cut(m.CheckContext(p.Context, p.Tensor, p.Attention == "ring"))
	if n := p.Tensor * p.Context; p.Sequence && p.Tensor > 1 && k.c.microTokens()%n != 0 {
		k.fault("parallel.sequence", "parallel.sequence = false, or another train.micro_batch",
			"a micro-batch has %d tokens, which parallel.tensor · parallel.context = %d does not divide",
			k.c.microTokens(), n)
	}
	k.unmeshed()
	if p.Pipeline > m.Layers {
		try := "parallel.pipeline = 1"
		if m.Layers > 1 {
			try = fmt.Sprintf("parallel.pipeline = %d or less", m.Layers)
		}
		k.fault("parallel.pipeline", try,
			"parallel.pipeline = %d is more than model.layers = %d: each stage needs a layer", p.Pipeline, m.Layers)
	}
	if p.Pipeline > 1 {
		k.stages()
	}
	if p.Outer.On() {
		k.fault("parallel.outer.groups", "parallel.outer.groups = 0",
			"parallel.outer.groups = %d does not work with parallel.tensor, context or pipeline yet", p.Outer.Groups)
	}
}

// stages checks that there is such a schedule, and a layer for each of its parts.
func (k *checker) stages() {
	p, m := &k.c.Parallel, &k.c.Model
	s, err := program.Parse(p.Schedule)
	switch {
	case err != nil:
		k.fault("parallel.schedule", "parallel.schedule = 1f1b", "parallel.schedule: %v", err)
	case s.Chunks > 1 && p.Pipeline*s.Chunks > m.Layers:
		k.fault("parallel.schedule", "fewer chunks", "parallel.schedule = %v on %d stages makes %d parts, "+
			"but the model has %d layers: each part needs one", s, p.Pipeline, p.Pipeline*s.Chunks, m.Layers)
	}
}

// unmeshed refuses combinations that do not work on a mesh.
func (k *checker) unmeshed() {
	c, p := k.c, &k.c.Parallel
	if p.Shared() > p.Pipeline && c.Precision == "fp8" && precision.BlocksOf(c.FP8.Scaling).Long > 0 {
		k.fault("fp8.scaling", "fp8.scaling = current, or train without parallel.tensor and parallel.context",
			"fp8.scaling = %s does not work with parallel.tensor and parallel.context: "+
				"blocks would end where the parts of ranks do", c.FP8.Scaling)
	}
	if p.Shared() > p.Pipeline && c.Optimizer.Name == "sophia" {
		k.fault("optimizer.name", "optimizer.name = adamw, or train without parallel.tensor and parallel.context",
			"optimizer.name = sophia does not work with parallel.tensor and parallel.context: "+
				"labels are sampled from all logits of all tokens")
	}
	if p.Pipeline > 1 && c.Model.TieEmbeddings && c.Train.NoiseScaleEvery > 0 {
		k.fault("train.noise_scale_every", "leave it out, or train without parallel.pipeline or model.tie_embeddings",
			"train.noise_scale_every does not work with both parallel.pipeline and model.tie_embeddings: "+
				"no stage has the gradient of a micro-batch for a tied table")
	}
	for _, x := range []struct {
		refused      bool
		key, without string
		why          string
	}{
		{p.Context > 1 && c.Train.LengthWarmup.Given(), "train.length_warmup", "parallel.context",
			"ranks have two chunks of a whole row each"},
		{p.Context > 1 && c.Train.NoiseScaleEvery > 0, "train.noise_scale_every", "parallel.context",
			"no rank has the gradient of a micro-batch"},
		{p.Shared() > 1 && c.Train.EvalAnswers, "train.eval_answers",
			"parallel.tensor, parallel.context and parallel.pipeline", "no rank has all logits of whole rows"},
		{p.Shared() > 1 && c.Eval.Tasks != "", "eval.tasks",
			"parallel.tensor, parallel.context and parallel.pipeline", "no rank has all logits of whole rows"},
		{p.Shared() > 1 && c.Samples.Every > 0, "samples.every",
			"parallel.tensor, parallel.context and parallel.pipeline", "no rank has all logits of whole rows"},
		{p.Pipeline > 1 && c.Memory.RecomputeInputs == "bf16", "memory.recompute_inputs", "parallel.pipeline",
			"segments, whose inputs are rounded, end with a stage"},
		{p.Pipeline > 1 && c.Guard.ReplayEvery > 0, "guard.replay_every", "parallel.pipeline",
			"stages have several micro-batches at a time"},
	} {
		if x.refused {
			k.fault(x.key, "leave it out, or train without "+x.without, "%s does not work with %s: %s",
				x.key, x.without, x.why)
		}
	}
}

// cut reports why ranks cannot share the model.
func (k *checker) cut(err error) {
	if c := (*model.CutError)(nil); errors.As(err, &c) {
		k.fault(c.Key, c.Try, "%s", c.Text)
	}
}
