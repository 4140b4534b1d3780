package config

import (
	"fmt"
	"slices"

	"anneal/attention"
	"anneal/model"
	"anneal/precision"
)

// ignored refuses keys that were given a value although nothing reads them, because their technique is off. A run that
// silently ignores a value would not be the run that was asked for. The keys of optimizers are checked with their
// values.
func (k *checker) ignored() {
	c, m, s, o := k.c, &k.c.Model, &k.c.Schedule, &k.c.Optimizer
	p, err := precision.Lookup(c.Precision) // the unknown name has been reported, and nothing else can be checked
	scaled, fp8 := err == nil && p.Scaled(), err == nil && p.FP8 != nil
	horizons := slices.Contains([]string{"cosine", "linear", "wsd", "power", "one_cycle"}, s.Name)
	decays := s.Name == "wsd" || s.Name == "wsds" || s.Name == "power" || k.reported("schedule.name")
	for _, rule := range []struct {
		ignored   bool
		with, try string
		keys      []string
	}{
		{!decays, "with schedule.name = " + s.Name, "schedule.name = wsd",
			[]string{"schedule.decay_fraction", "schedule.decay_shape"}},
		{usualBranches[s.Name] == "" && !k.reported("schedule.name"), "with schedule.name = " + s.Name,
			"schedule.name = wsds", []string{"schedule.branches"}},
		{!horizons && !k.reported("schedule.name"), "with schedule.name = " + s.Name, "schedule.name = cosine",
			[]string{"schedule.horizon"}},
		{s.Name == "cyclic", "with schedule.name = cyclic", "another schedule.name", []string{"schedule.warmup"}},
		{s.Name == "constant", "with schedule.name = constant", "another schedule.name",
			[]string{"schedule.final_ratio"}},
		{!c.Train.BatchRamp.Given(), "without train.batch_ramp", "train.batch_ramp", []string{"train.batch_ramp_lr"}},
		{c.Init.From == "", "without init.from", "init.from", []string{
			"init.step", "init.weights", "init.tokenizer", "init.ewc",
		}},
		{c.Init.EWC == 0, "without init.ewc", "init.ewc = 1", []string{"init.ewc_step"}},
		{!c.Distill.On(), "without distill.teacher", "distill.teacher = DIR", []string{
			"distill.step", "distill.hash", "distill.temperature", "distill.weight", "distill.top_k",
		}},
		{!c.Data.Mix.Given(), "without data.mix", "data.mix", []string{"data.weights"}},
		{!c.Log.Sinks.Has(Prometheus), "without log.sinks = prometheus", "log.sinks = prometheus",
			[]string{"log.prometheus_listen"}},
		{!c.Log.Sinks.Has(Trackio), "without log.sinks = trackio", "log.sinks = trackio",
			[]string{"log.trackio_url", "log.trackio_project"}},
		{len(c.Log.Sinks) == 0, "without log.sinks", "log.sinks = tensorboard", []string{"log.every"}},
		{c.Guard.SpikeZ == 0 && !c.Parallel.Outer.On(), "without guard.spike_z", "guard.spike_z = 6",
			[]string{"guard.window"}},
		{c.Eval.Tasks == "", "without eval.tasks", "eval.tasks = DIR", []string{"eval.tasks_every"}},
		{c.Samples.Every == 0, "without samples.every", "samples.every = 100",
			[]string{"samples.prompts", "samples.tokens", "samples.temperature"}},
		{!c.Watchdog.Enabled, "with watchdog.enabled = false", "watchdog.enabled = true", []string{"watchdog.exit"}},
		{c.Guard.OnDivergence != Rewind && !k.reported("guard.on_divergence"), "with guard.on_divergence = " +
			c.Guard.OnDivergence, "guard.on_divergence = rewind", []string{"guard.rewinds"}},
		{c.Parallel.Tensor <= 1, "without parallel.tensor", "parallel.tensor = 2", []string{"parallel.sequence"}},
		{c.Parallel.Context <= 1, "without parallel.context", "parallel.context = 2", []string{"parallel.attention"}},
		{c.Parallel.Pipeline <= 1, "without parallel.pipeline", "parallel.pipeline = 2", []string{"parallel.schedule"}},
		{!c.Parallel.Outer.On(), "without parallel.outer.groups", "parallel.outer.groups = 2", []string{
			"parallel.outer.every", "parallel.outer.lr", "parallel.outer.momentum",
		}},
		{len(c.Memory.Offload) == 0, "without memory.offload", "memory.offload = optimizer",
			[]string{"memory.offload_dir"}},
		{m.LoRARank == 0, "without model.lora_rank", "model.lora_rank = 8",
			[]string{"model.lora_alpha", "model.lora_targets", "model.lora_dora"}},
		{m.LoRARank > 0, "with model.lora_rank, which trains adapters alone",
			"optimizer.groups.matrix, or model.lora_rank = 0", []string{
				"optimizer.groups.embedding.lr_ratio", "optimizer.groups.embedding.weight_decay",
				"optimizer.groups.head.lr_ratio", "optimizer.groups.head.weight_decay",
				"optimizer.groups.bias.lr_ratio", "optimizer.groups.bias.weight_decay",
			}},
		{m.LoRARank > 0 && !m.LoRADora, "with model.lora_rank, which trains adapters alone",
			"optimizer.groups.matrix, or model.lora_dora = true",
			[]string{"optimizer.groups.norm.lr_ratio", "optimizer.groups.norm.weight_decay"}},
		{!m.MuP, "without model.mup", "model.mup = true", []string{
			"model.mup_base_dim", "model.mup_base_head_dim", "model.mup_base_ffn", "model.mup_base_layers",
			"model.mup_input_scale", "model.mup_output_scale",
		}},
		{!m.HasPositions("rope"), "with " + c.TurnsNothing(),
			"a layer with model.positions = rope and model.attention other than linear", []string{
				"model.rope_theta", "model.rope_theta_local", "model.rope_scaling", "model.rope_original_context",
				"model.rope_layout",
			}},
		{m.HasPositions("rope") && !windowed(m), "without a layer of model.attention = window",
			"model.attention = window:256,full", []string{"model.rope_theta_local"}},
		{!m.HasSoftmax(), "with model.attention = " + m.Attention.String(),
			"a layer with model.attention other than linear",
			[]string{"model.attention_sinks", "model.attention_softcap"}},
		{!hasLinear(m), "without a layer of linear attention", "model.attention = delta:gated",
			[]string{"model.short_conv"}},
		{!hasLongformer(m), "without a layer of model.attention = longformer", "model.attention = longformer",
			[]string{"model.longformer_global_projections"}},
		{m.KVLoraRank == 0, "without model.kv_lora_rank", "model.kv_lora_rank = 128", []string{"model.rope_head_dim"}},
		{!m.RopeScaling.NeedsOriginal(), "with model.rope_scaling = " + m.RopeScaling.String(),
			"model.rope_scaling = yarn:4", []string{"model.rope_original_context"}},
		{m.Init == "small", "with model.init = small, which follows the width", "model.init = gpt2",
			[]string{"model.init_std"}},
		{err == nil && !scaled, "with precision = " + c.Precision + ": only fp16 uses it", "precision = fp16", []string{
			"loss_scale.dynamic", "loss_scale.init", "loss_scale.interval", "loss_scale.floor", "loss_scale.hysteresis",
		}},
		{err == nil && !fp8, "with precision = " + c.Precision + ": only fp8 uses it", "precision = fp8",
			[]string{"fp8.scaling", "fp8.history", "fp8.margin", "fp8.attention"}},
		{scaled && !c.LossScale.Dynamic, "with loss_scale.dynamic = false", "loss_scale.dynamic = true",
			[]string{"loss_scale.interval", "loss_scale.floor", "loss_scale.hysteresis"}},
		{fp8 && c.FP8.Scaling != "delayed", "with fp8.scaling = " + c.FP8.Scaling, "fp8.scaling = delayed",
			[]string{"fp8.history", "fp8.margin"}},
		{o.Name == "sgd" && o.Momentum == 0, "without optimizer.momentum", "optimizer.momentum = 0.9",
			[]string{"optimizer.dampening"}},
		{m.TieEmbeddings, "with model.tie_embeddings, where the head is the embedding table",
			"optimizer.groups.embedding, or model.tie_embeddings = false", []string{
				"optimizer.groups.head.lr_ratio", "optimizer.groups.head.weight_decay",
			}},
		{!m.HasBiases(), "with model.family = " + m.Family + ", which has no biases",
			"optimizer.groups.norm or optimizer.groups.matrix", []string{
				"optimizer.groups.bias.lr_ratio", "optimizer.groups.bias.weight_decay",
			}},
		{!k.decaysAny(), "where no weight decays", "optimizer.weight_decay = 0.1",
			[]string{"optimizer.cautious_decay", "schedule.weight_decay"}},
	} {
		for _, name := range rule.keys {
			if at := allKeys[keyIndex[name]]; rule.ignored && k.given(name) && !k.reported(name) &&
				k.c.value(at) != k.leftOut(at) {
				k.fault(name, fmt.Sprintf("%s, or remove %s", rule.try, name), "%s = %s has no effect %s", name,
					k.c.value(at), rule.with)
			}
		}
	}
}

// given reports whether a key has a value of its own, not one that follows from others or is left at its default.
func (k *checker) given(name string) bool {
	from, has := k.c.origins[name]
	return has && !from.Default && from.Rule == "" || k.c.amounts[name] != (amount{})
}

// windowed reports whether a layer sees a window.
func windowed(m *model.Config) bool {
	return slices.ContainsFunc(m.Attention, func(p attention.Pattern) bool { _, is := p.(attention.Window); return is })
}

func (k *checker) reported(key string) bool {
	return slices.ContainsFunc(k.problems, func(p Problem) bool { return p.Key == key })
}

// leftOut returns the value that a key would have if it were not given.
func (k *checker) leftOut(key Key) string {
	c := k.c.Clone()
	c.leaveOut(key)
	c.Resolve()
	return c.value(key)
}

// groups returns the roles of the model's trained parameters.
func (k *checker) groups() []Group {
	g := k.c.Optimizer.Groups
	if m := &k.c.Model; m.LoRARank > 0 { // all but adapters is frozen; DoRA's norms have the role of norms
		if m.LoRADora {
			return []Group{g.Matrix, g.Norm}
		}
		return []Group{g.Matrix}
	}
	list := []Group{g.Matrix, g.Embedding, g.Norm}
	if !k.c.Model.TieEmbeddings {
		list = append(list, g.Head)
	}
	if k.c.Model.HasBiases() {
		list = append(list, g.Bias)
	}
	return list
}

func (k *checker) decaysAny() bool {
	if k.c.Optimizer.Patterns.Given() {
		return true // maybe
	}
	for _, g := range k.groups() {
		if g.LRRatio*g.WeightDecay > 0 {
			return true
		}
	}
	return false
}

// frozen refuses a run that trains nothing.
func (k *checker) frozen() {
	if k.c.Optimizer.Patterns.Given() {
		return // maybe not
	}
	for _, g := range k.groups() {
		if g.LRRatio != 0 {
			return
		}
	}
	const key = "optimizer.groups.matrix.lr_ratio"
	k.fault(key, key+" = 1", "lr_ratio = 0 in every group of parameters: nothing would be trained")
}
