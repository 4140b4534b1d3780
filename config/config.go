package config

import (
	"maps"
	"slices"

	"anneal/attention"
	"anneal/dataset"
	"anneal/model"
)

// Config is one training run. Whole numbers that are 0 and numbers that are NaN stand for a value that
// Resolve derives, where the key has a rule.
type Config struct {
	Seed      uint64 `yaml:"seed"`
	Device    string `yaml:"device"`
	Precision string `yaml:"precision"`
	Threads   int    `yaml:"threads"`

	Model      model.Config `yaml:"model"`
	Init       Init         `yaml:"init"`
	Distill    Distill      `yaml:"distill"`
	Data       Data         `yaml:"data"`
	Train      Train        `yaml:"train"`
	Optimizer  Optimizer    `yaml:"optimizer"`
	Schedule   Schedule     `yaml:"schedule"`
	LossScale  LossScale    `yaml:"loss_scale"`
	FP8        FP8          `yaml:"fp8"`
	Checkpoint Checkpoint   `yaml:"checkpoint"`
	Guard      Guard        `yaml:"guard"`
	Watchdog   Watchdog     `yaml:"watchdog"`
	Average    Average      `yaml:"average"`
	Eval       Eval         `yaml:"eval"`
	Samples    Samples      `yaml:"samples"`
	Memory     Memory       `yaml:"memory"`
	Parallel   Parallel     `yaml:"parallel"`
	Log        Log          `yaml:"log"`

	origins  map[string]Origin // by dotted key; a missing key is at its default
	amounts  map[string]amount // by key: lengths that were given in other units than steps
	past     []Stretch         // for Order and Mix; see After
	planning bool              // nothing will be trained
	started  bool              // the config belongs to a run that has begun
	recipe   string            // name of the recipe that the config began with
	scaled   bool              // the recipe's model was scaled down
	teacher  *model.Config     // model of distill.teacher, once it is opened
	remarks  []string          // notices about how the config was read and how initial weights were converted
}

// Init selects the weights that a run starts from, if they are not random.
type Init struct {
	From      string `yaml:"from"`
	Step      int    `yaml:"step"`
	Weights   string `yaml:"weights"`
	Tokenizer string `yaml:"tokenizer"`

	EWC     float64 `yaml:"ewc"`
	EWCStep int     `yaml:"ewc_step"`
}

// Data configures the data that the model reads.
type Data struct {
	Path         string           `yaml:"path"`
	Mix          Mix              `yaml:"mix"`
	Weights      Weights          `yaml:"weights"`
	Packing      string           `yaml:"packing"`
	DocumentMask bool             `yaml:"document_mask"`
	Order        Order            `yaml:"order"`
	Skip         dataset.SkipList `yaml:"skip"`
}

// Train configures how long a run trains and the size of its batches.
type Train struct {
	Steps           int          `yaml:"steps"`
	Minutes         float64      `yaml:"minutes"`
	BatchTokens     int          `yaml:"batch_tokens"`
	BatchRamp       BatchRamp    `yaml:"batch_ramp"`
	BatchRampLR     string       `yaml:"batch_ramp_lr"`
	LengthWarmup    LengthWarmup `yaml:"length_warmup"`
	MicroBatch      int          `yaml:"micro_batch"`
	Clip            float64      `yaml:"clip"`
	ZLoss           float64      `yaml:"z_loss"`
	EvalEvery       int          `yaml:"eval_every"`
	EvalTokens      int          `yaml:"eval_tokens"`
	EvalPacking     string       `yaml:"eval_packing"`
	EvalAnswers     bool         `yaml:"eval_answers"`
	LogEvery        int          `yaml:"log_every"`
	NormsEvery      int          `yaml:"norms_every"`
	NoiseScaleEvery int          `yaml:"noise_scale_every"`
}

// Schedule configures the learning rate over the steps, as a fraction of Optimizer.LR.
type Schedule struct {
	Name           string   `yaml:"name"`
	Warmup         int      `yaml:"warmup"`
	FinalRatio     float64  `yaml:"final_ratio"`
	Horizon        int      `yaml:"horizon"`
	DecayFraction  float64  `yaml:"decay_fraction"`
	DecayShape     string   `yaml:"decay_shape"`
	WeightDecay    string   `yaml:"weight_decay"`
	MomentumWarmup int      `yaml:"momentum_warmup"`
	Branches       Branches `yaml:"branches"`
}

// LossScale configures the factor that keeps the gradients of precision fp16 within its range.
type LossScale struct {
	Dynamic  bool    `yaml:"dynamic"`
	Init     float64 `yaml:"init"`
	Interval int     `yaml:"interval"`
	Floor    float64 `yaml:"floor"`

	Hysteresis int `yaml:"hysteresis"`
}

// FP8 configures how the operands of precision fp8 are scaled.
type FP8 struct {
	Scaling string `yaml:"scaling"`
	History int    `yaml:"history"`
	Margin  int    `yaml:"margin"`

	Attention bool `yaml:"attention"`
}

// Checkpoint configures when the run's state is saved and how many checkpoints are kept.
type Checkpoint struct {
	Every       int `yaml:"every"`
	Keep        int `yaml:"keep"`
	MaxFailures int `yaml:"max_failures"`
}

// Guard configures when an update is skipped and when a run gives up.
type Guard struct {
	MaxSkips int     `yaml:"max_skips"`
	SpikeZ   float64 `yaml:"spike_z"`
	Window   int     `yaml:"window"`

	OnDivergence string `yaml:"on_divergence"`
	Rewinds      int    `yaml:"rewinds"`
	Rewound      int    `yaml:"rewound"`

	ReplayEvery int `yaml:"replay_every"`
}

// Rewind is the value of guard.on_divergence with which a diverged run rewinds automatically.
const Rewind = "rewind"

// Watchdog configures what happens when a part of a step takes far longer than it ever has.
type Watchdog struct {
	Enabled bool `yaml:"enabled"`
	Exit    bool `yaml:"exit"`
}

// Average configures the average of the weights over the steps.
type Average struct {
	EMA float64 `yaml:"ema"`
}

// Eval configures the tasks that a model is scored on while it trains.
type Eval struct {
	Tasks      string `yaml:"tasks"`
	TasksEvery int    `yaml:"tasks_every"`
}

// Samples configures texts that the model writes while it trains.
type Samples struct {
	Every       int     `yaml:"every"`
	Prompts     string  `yaml:"prompts"`
	Tokens      int     `yaml:"tokens"`
	Temperature float64 `yaml:"temperature"`
}

// Memory configures what a run recomputes, or keeps on disk, to save memory.
type Memory struct {
	Recompute model.Recompute `yaml:"recompute"`
	// full or bf16: the format in which recomputed segments keep their inputs
	RecomputeInputs string  `yaml:"recompute_inputs"`
	Offload         Offload `yaml:"offload"`
	OffloadDir      string  `yaml:"offload_dir"` // the directory of the file
}

// Default returns a config in which every key has its default. Derived values are still zero.
func Default() *Config {
	return &Config{
		Seed: 1, Device: "cpu", Precision: "bf16",
		Model: model.Config{
			Family: "llama", Layers: 6, Dim: 384, Heads: 6, Context: 256,
			TieEmbeddings: true, Positions: model.Positions{"rope"}, RopeTheta: 10000, RopeLayout: "half",
			NormEps: 1e-5, InitStd: 0.02, Init: "gpt2", ZeroInit: "none",
			Attention: attention.Patterns{attention.Full{}}, Activation: "swiglu", ValueEmbeddings: "none",
			MuPBaseDim: 256, MuPInputScale: 1, MuPOutputScale: 1,
		},
		Init:    Init{Tokenizer: "related"},
		Distill: Distill{Temperature: 1, Weight: 0.5, TopK: 64},
		Data:    Data{Weights: readWeights("natural"), Packing: "concat", DocumentMask: true},
		Train: Train{
			Steps: 1000, BatchTokens: 16384, BatchRampLR: "sqrt", Clip: 1, EvalEvery: 200,
			EvalTokens: 65536, EvalPacking: "concat", LogEvery: 10, NormsEvery: 10,
		},
		Optimizer: Optimizer{
			Name: "adamw", LR: derived, Momentum: derived, Dampening: derived, Beta1: derived, Beta2: derived,
			Beta3: derived, Alpha: derived, Eps: derived, Variant: "t5", RelativeStep: true, ScaleParameter: true,
			WeightDecay: derived, DecayEmbeddings: true, MuonScale: "match_rms", NewtonSchulz: "polar_express",
			NewtonSchulzIn: "f32", AdamWLR: derived, Rho: derived, HessianEvery: 10, BasisEvery: 10,
			Moments: "f32", Masters: "f32",
			Groups: Groups{
				Group{1, derived}, Group{1, derived}, Group{1, derived}, Group{1, derived}, Group{1, derived},
			},
		},
		Schedule: Schedule{
			Name: "cosine", FinalRatio: derived, DecayFraction: 0.2, DecayShape: "sqrt", WeightDecay: "constant",
		},
		LossScale:  LossScale{Dynamic: true, Init: 65536, Interval: 2000, Floor: 1, Hysteresis: 1},
		FP8:        FP8{Scaling: "current", History: 1024},
		Checkpoint: Checkpoint{Every: 200, Keep: 3, MaxFailures: 3},
		Guard:      Guard{MaxSkips: 10, Window: 128, OnDivergence: "stop", Rewinds: 2},
		Watchdog:   Watchdog{Enabled: true},
		Samples:    Samples{Tokens: 48, Temperature: 0.7},
		Memory:     Memory{RecomputeInputs: "full", OffloadDir: "."},
		Parallel: Parallel{
			Ranks: 1, Tensor: 1, Sequence: true, Context: 1, Attention: "ring", Pipeline: 1, Schedule: "1f1b",
			Timeout: 10, Wire: "f32", SumBlock: 1, Outer: Outer{Every: 100, LR: 0.7, Momentum: 0.9},
		},
		Log: Log{
			Every: 1, PrometheusListen: "127.0.0.1:9464", TrackioURL: "http://127.0.0.1:7860", TrackioProject: "anneal",
		},
		origins: map[string]Origin{},
	}
}

// Planning reports whether the config is only for a plan, without training.
func (c *Config) Planning() bool { return c.planning }

// Remarks returns notices for the user about how the config was read.
func (c *Config) Remarks() []string { return c.remarks }

// Remark adds a notice for the user about how the config was made.
func (c *Config) Remark(text string) {
	if !slices.Contains(c.remarks, text) {
		c.remarks = append(slices.Clip(c.remarks), text)
	}
}

// Clone returns a copy that shares only immutable lists with c.
func (c *Config) Clone() *Config {
	r := *c
	r.origins, r.amounts, r.remarks = maps.Clone(c.origins), maps.Clone(c.amounts), slices.Clone(c.remarks)
	return &r
}
