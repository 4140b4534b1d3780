package bench

import (
	"cmp"
	"slices"
	"strings"

	"anneal/hardware"
	"anneal/plan/cluster"
)

// Defaults of the values that a source does not give: the vocabulary of GPT-2 padded as Megatron-LM does, one chunk of
// layers for each stage of 1F1B and two for interleaved schedules, the largest micro-batch of 1, 2 and 4 sequences
// that divides the batch of a rank (1 in a pipeline), ZeRO-3 on TPUs, and recomputation as leastRecompute says.
const defaultVocab = 50304

func (c cells) shape() cluster.Shape {
	s := cluster.Shape{
		Name: cmp.Or(c["model"], "model"), Layers: c.count("layers"), Dim: c.count("hidden"),
		Heads: max(1, c.count("heads")), KVHeads: c.count("kv_heads"), HeadDim: c.count("head_dim"),
		FFN: c.count("ffn"), Gated: c.has("mlp", "swiglu"), Vocab: c.count("vocab"), Context: c.count("seq_len"),
		Experts: c.count("moe_experts"), TopK: c.count("moe_topk"), ExpertFFN: c.count("moe_expert_ffn"),
		SharedFFN: c.count("moe_shared_ffn"), Dense: c.count("moe_dense_layers"),
	}
	s.Rotary = s.Gated
	s.Tied = !s.Gated && s.Experts == 0
	s.Side = c.has("arch", "parallel")
	if s.Vocab == 0 {
		s.Vocab = defaultVocab
	}
	if s.FFN == 0 {
		s.FFN = 4 * s.Dim
	}
	if s.HeadDim == 0 {
		s.HeadDim = s.Dim / s.Heads
	}
	if c.has("arch", "mla") {
		s.HeadDim, s.Latent = 128, cluster.Latent{Query: 1536, KV: 512, Rope: 64, V: 128}
		s.Rotary, s.Extra = true, 1
	}
	if c.has("arch", "window") { // three layers with half the context for each with the whole
		s.Mean = s.Context * 5 / 8
	}
	return s
}

// stack returns the software of a row, by its source. Softmax of whole score matrices was usual before FlashAttention
// (2022); Megatron-LM exchanged gradients after the last backward pass until 2023.
func (c cells) stack() cluster.Stack {
	switch set := c["set"]; {
	case strings.HasPrefix(set, "megatron-sc21"), strings.HasPrefix(set, "megatron-readme"), set == "korthikanti",
		strings.HasPrefix(set, "bloom"), set == "neox", set == "zero", set == "zero-bubble":
		return cluster.Stack{Attention: "unfused", GradientBytes: 2}
	case set == "llm-foundry":
		s := cluster.Stack{Attention: "flash", OverlapData: true, GradientBytes: 4, Eager: true}
		if c["precision"] == "bf16" {
			s.GradientBytes = 2
		}
		return s
	case set == "torchtitan":
		return cluster.Stack{Attention: "flash2", OverlapData: true, GradientBytes: 4}
	case strings.HasPrefix(set, "nemo"), strings.HasPrefix(set, "megatron-h100"), strings.HasPrefix(set, "maxtext"),
		set == "tpu-recipes", set == "palm":
		s := cluster.Modern
		s.OverlapTensor = true
		s.GathersProducts = !strings.HasPrefix(set, "nemo") && !strings.HasPrefix(set, "megatron-h100") // XLA
		return s
	default:
		return cluster.Modern
	}
}

// mesh fills in the mesh of a row: how its ranks share the model. It leaves open what a source does not say of
// recomputation.
func (c cells) mesh(r *cluster.Run) {
	r.Shape.Dropout = r.Stack.Attention == "unfused"
	m := cluster.Mesh{
		Tensor: max(1, c.count("tp")), Pipeline: max(1, c.count("pp")), Context: max(1, c.count("cp")),
		Expert: max(1, c.count("ep")), Chunks: max(1, c.count("vpp")), Micro: c.count("micro_batch"),
		Data: c.count("dp"), Schedule: "1f1b", Recompute: c.recompute(), Precision: c.precision(),
	}
	m.Sequence = m.Tensor > 1 && r.Stack.Attention != "unfused" || c["sp"] == "1"
	if m.Data == 0 {
		m.Data = max(1, r.Cluster.Devices/m.Tensor/m.Pipeline/m.Context)
	}
	for zero, names := range [][]string{
		{"zero-0"}, {"zero-1", "distributed opt"}, {"zero-2", "grad_op", "sharded, param"},
		{"zero-3", "full shard", "fsdp"},
	} {
		if c.has("dp_kind", names...) && (zero < 3 || m.Zero == 0) {
			m.Zero = zero
		}
	}
	switch {
	case c.has("schedule", "zb"):
		m.Schedule = "zb-h1"
	case c.has("schedule", "interleaved"):
		if m.Chunks == 1 && r.Shape.Layers >= 2*m.Pipeline {
			m.Chunks = 2
		}
	}
	if m.Pipeline == 1 || m.Pipeline*m.Chunks > r.Shape.Layers {
		m.Chunks = 1
	}
	if m.Chunks > 1 {
		m.Schedule = "interleaved:" + itoa(m.Chunks)
	}
	if m.Micro == 0 {
		m.Micro = 1
		for m.Pipeline == 1 && m.Micro < 4 && r.Batch%(m.Data*m.Micro*2) == 0 {
			m.Micro *= 2
		}
	}
	if c["dp_kind"] == "" && r.Cluster.Accelerator.Cores == 0 {
		m.Zero = 3
	}
	if r.Cluster.Accelerator.Cores == 0 && m.Zero == 3 && c.count("gpus_per_node") > r.Cluster.PerNode {
		m.Shard = max(0, c.count("gpus_per_node")/m.Tensor) // a slice; the network between slices carries gradients
	}
	if c["set"] == "palm" {
		m.Shard = 256
	}
	for m.Data > 1 && m.Data > r.Batch && m.Data%2 == 0 { // sequences are cut
		m.Data, m.Context = m.Data/2, m.Context*2
	}
	r.Mesh = m
}

// leastRecompute returns the recomputation of a run whose source does not give it: none if that fits or if the model
// has no experts, as in the recipes of Megatron-Bridge and the paper on Llama 3, else half.
func leastRecompute(r *cluster.Run) cluster.Recompute {
	if r.Shape.Experts == 0 {
		return cluster.None
	}
	try := *r
	try.Mesh.Recompute = cluster.None
	s, err := try.Shortened()
	if err != nil {
		return cluster.Half
	}
	fullest := slices.MaxFunc(try.Memory(s), func(a, b cluster.Memory) int { return cmp.Compare(a.Total(), b.Total()) })
	if fullest.Total() > cluster.Usable*r.Cluster.Accelerator.Memory {
		return cluster.Half
	}
	return cluster.None
}

func (c cells) recompute() cluster.Recompute {
	switch {
	case c.has("recompute", "full", "most"):
		return cluster.Full
	case c.has("recompute", "half", "per-op", "custom", "qkv"):
		return cluster.Half
	case c.has("recompute", "attention", "minimal", "selective"):
		return cluster.Attention
	case c.has("recompute", "none"):
		return cluster.None
	default:
		return ""
	}
}

func (c cells) precision() hardware.Precision {
	switch {
	case c.has("precision", "fp4"):
		return hardware.FP4
	case c.has("precision", "fp8", "float8"):
		return hardware.FP8
	case c.has("precision", "fp16"):
		return hardware.FP16
	default:
		return hardware.BF16
	}
}
