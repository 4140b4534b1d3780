package techniques

// A Group is a set of techniques of one kind; a run has at most one of them. Its rows are compared with a run that has
// none of them.
type Group struct {
	Name  string // as --only has it
	Title string
	Rows  []Row
	Base  []string // overrides of all its runs, besides base
}

// A Row is a technique with the overrides that turn it on.
type Row struct {
	Name string
	Set  []string
}

// base is the run that techniques are compared with: Llama with half a million parameters and AdamW, on 820,000 tokens
// of the source of the Go standard library.
var base = []string{
	"model.layers=4", "model.dim=64", "model.heads=2", "model.ffn=192", "model.context=256", "precision=bf16",
	"optimizer.lr=4e-3", "schedule.name=cosine", "schedule.warmup=80",
	"train.steps=800", "train.batch_tokens=1024", "train.eval_every=0", "train.eval_tokens=131072",
	"checkpoint.every=0",
}

// Groups returns the comparisons, in the order of docs/measured.md. A rate in a row is the start of its search.
func Groups() []Group {
	return []Group{
		{Name: "optimizers", Title: "Optimizers", Rows: optimizers},
		{Name: "muon", Title: "Options of Muon", Rows: muon, Base: []string{"optimizer.name=muon"}},
		{Name: "schedules", Title: "Schedules and ramps", Rows: schedules},
		{Name: "decays", Title: "Shapes of a decay", Rows: decays, Base: []string{"schedule.name=wsd"}},
		{Name: "weight_decay", Title: "Weight decay", Rows: weightDecays},
		{Name: "precision", Title: "Precision", Rows: precisions},
		{Name: "memory", Title: "Storage formats", Rows: memory},
		{Name: "stability", Title: "Stability and regularisation", Rows: stability},
		{Name: "init", Title: "Initialisation", Rows: initialisation},
		{Name: "attention", Title: "Attention patterns", Rows: attentions},
		{Name: "positions", Title: "Positions", Rows: positions},
		{Name: "families", Title: "Families", Rows: families},
		{Name: "anneal", Title: "Options of family anneal", Rows: annealOptions, Base: []string{
			"model.family=anneal", "optimizer.name=muon",
		}},
	}
}

var optimizers = []Row{
	{"SGD with momentum", []string{"optimizer.name=sgd", "optimizer.lr=0.5"}},
	{"Adam, without decay", []string{"optimizer.name=adam"}},
	{"Adafactor", []string{"optimizer.name=adafactor", "optimizer.lr=3e-2"}},
	{"Adafactor as in PaLM", []string{"optimizer.name=adafactor", "optimizer.variant=palm", "optimizer.lr=0.1"}},
	{"Lion", []string{"optimizer.name=lion", "optimizer.lr=5e-4"}},
	{"AdEMAMix", []string{"optimizer.name=ademamix"}},
	{"Muon", []string{"optimizer.name=muon"}},
	{"Muon, Jordan's scale", []string{"optimizer.name=muon", "optimizer.muon_scale=jordan", "optimizer.lr=0.02"}},
	{"NorMuon", []string{"optimizer.name=muon", "optimizer.normuon=true"}},
	{"Sophia-G", []string{"optimizer.name=sophia", "optimizer.lr=1e-3"}},
	{"SOAP", []string{"optimizer.name=soap"}},
	{"schedule-free AdamW", []string{"optimizer.name=schedulefree", "schedule.name=constant", "optimizer.lr=1e-2"}},
	{"moments in BF16", []string{"optimizer.moments=bf16"}},
	{"8-bit Adam", []string{"optimizer.name=adam8bit"}},
	{"second moment over 100 steps", []string{"optimizer.beta2=0.99"}},
}

var muon = []Row{
	{"Newton–Schulz in BF16", []string{"optimizer.newton_schulz_operands=bf16"}},
	{"Jordan's coefficients", []string{"optimizer.newton_schulz=jordan"}},
	{"momentum that rises over 300 steps", []string{"schedule.momentum_warmup=300"}},
	{"cautious decay", []string{"optimizer.cautious_decay=true"}},
}

var schedules = []Row{
	{"linear", []string{"schedule.name=linear"}},
	{"warmup, stable, decay (WSD)", []string{"schedule.name=wsd"}},
	{"WSD, decay over two fifths", []string{"schedule.name=wsd", "schedule.decay_fraction=0.4"}},
	{"inverse square root", []string{"schedule.name=inverse_sqrt"}},
	{"power of the position", []string{"schedule.name=power"}},
	{"two restarts (SGDR)", []string{"schedule.name=restarts"}},
	{"one cycle", []string{"schedule.name=one_cycle"}},
	{"constant", []string{"schedule.name=constant"}},
	{"horizon at 87 %", []string{"schedule.horizon=87%"}},
	{"no warmup", []string{"schedule.warmup=0"}},
	{"sequence-length warmup", []string{"train.length_warmup=64 over 20%"}},
}

var decays = []Row{
	{"linear decay", []string{"schedule.decay_shape=linear"}},
	{"exponential decay", []string{"schedule.decay_shape=exponential"}},
	{"decays at 25 and 50 %, too (WSD-S)", []string{"schedule.name=wsds"}},
	{"steps at 80 and 90 %", []string{"schedule.name=step"}},
}

var weightDecays = []Row{
	{"none", []string{"optimizer.weight_decay=0"}},
	{"cautious", []string{"optimizer.cautious_decay=true"}},
	{"falls to 0", []string{"schedule.weight_decay=linear"}},
	{"by its time scale, a tenth of the run", []string{"optimizer.decay_timescale=0.1"}},
}

var precisions = []Row{
	{"FP32", []string{"precision=fp32"}},
	{"FP16, dynamic loss scale", []string{"precision=fp16"}},
	{"FP8, current scaling", []string{"precision=fp8"}},
	{"FP8, delayed scaling", []string{"precision=fp8", "fp8.scaling=delayed"}},
	{"FP8, blocks of 128", []string{"precision=fp8", "fp8.scaling=block"}},
	{"MXFP8", []string{"precision=fp8", "fp8.scaling=mx"}},
	{"FP8 attention", []string{"precision=fp8", "fp8.attention=true"}},
	{"TF32", []string{"precision=tf32"}},
	{"BF16 weights, stochastic rounding", []string{"precision=bf16_sr"}},
}

var memory = []Row{
	{"masters and moments in FP64", []string{"optimizer.masters=f64"}},
	{"layers recomputed, their inputs in BF16",
		[]string{"memory.recompute=every_layer", "memory.recompute_inputs=bf16"}},
}

var stability = []Row{
	{"no clipping", []string{"train.clip=0"}},
	{"z-loss", []string{"train.z_loss=1e-4"}},
	{"logit soft-cap", []string{"model.logit_softcap=30"}},
	{"QK-norm", []string{"model.qk_norm=true"}},
	{"dropout", []string{"model.dropout=0.1"}},
	{"stochastic depth", []string{"model.stochastic_depth=0.1"}},
}

var initialisation = []Row{
	{"He", []string{"model.init=he"}},
	{"Xavier", []string{"model.init=xavier"}},
	{"small", []string{"model.init=small"}},
	{"zero-initialised outputs", []string{"model.zero_init=residual"}},
}

var attentions = []Row{
	{"window of 64", []string{"model.attention=window:64"}},
	{"Longformer", []string{"model.attention=longformer:64:8"}},
	{"Longformer, dilated windows", []string{"model.attention=longformer:64:8:dilation=1/1/2:heads=1"}},
	{"Longformer, own global projections",
		[]string{"model.attention=longformer:64:8", "model.longformer_global_projections=true"}},
	{"BigBird, blocks of 16", []string{"model.attention=bigbird:block=16"}},
	{"Sparse Transformer, strided", []string{"model.attention=strided:32"}},
	{"Sparse Transformer, fixed", []string{"model.attention=fixed:32:4"}},
	{"LongNet", []string{"model.attention=longnet:64"}},
	{"LongNet, more branches in deeper layers", []string{"model.attention=longnet:64:depth"}},
	{"linear attention", []string{"model.attention=linear"}},
	{"gated linear attention", []string{"model.attention=linear:gated"}},
	{"GLA, a gate for each key dimension", []string{"model.attention=gla"}},
	{"delta rule", []string{"model.attention=delta"}},
	{"gated delta rule", []string{"model.attention=delta:gated"}},
	{"gated delta rule, short convolutions", []string{"model.attention=delta:gated", "model.short_conv=4"}},
	{"multi-head latent attention", []string{"model.kv_lora_rank=32"}},
	{"attention sinks", []string{"model.attention_sinks=true"}},
	{"soft-capped scores", []string{"model.attention_softcap=50"}},
}

var positions = []Row{
	{"ALiBi", []string{"model.positions=alibi"}},
	{"learned", []string{"model.positions=learned"}},
	{"none", []string{"model.positions=none"}},
	{"none in every fourth layer", []string{"model.positions=[rope,rope,rope,none]"}},
	{"RoPE, base 100,000", []string{"model.rope_theta=1e5"}},
	{"RoPE, neighbours", []string{"model.rope_layout=interleaved"}},
}

var families = []Row{
	{"GPT-2", []string{"model.family=gpt2"}},
	{"biases of queries, keys and values (Qwen2)", []string{"model.qkv_bias=true"}},
	{"Gemma 2", []string{"model.family=gemma2"}},
	{"Gemma 3", []string{"model.family=gemma3"}},
	{"OLMo 2", []string{"model.family=olmo2"}},
	{"anneal", []string{"model.family=anneal"}},
	{"anneal with Muon", []string{"model.family=anneal", "optimizer.name=muon"}},
}

var annealOptions = []Row{
	{"a table of pairs of tokens, 16,384 rows", []string{"model.bigram=16384"}},
	{"a share of the token before (smear)", []string{"model.smear=true"}},
}
