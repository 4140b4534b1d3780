package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/units"
	"anneal/precision"
	"anneal/prepare"
	"anneal/train"
)

// Foresight is the forecast of what a run will need.
type Foresight struct {
	Parameters    int64    `json:"parameters"`
	Active        int64    `json:"active_parameters"` // parameters that one token uses: fewer with experts
	FLOPsPerToken float64  `json:"flops_per_token"`
	Tokens        int64    `json:"tokens"`         // of the whole run
	Trained       int64    `json:"trained_tokens"` // tokens whose targets count: neither padding nor prompts
	Epochs        float64  `json:"epochs"`         // passes over the data; 0 without data
	Memory        Estimate `json:"memory"`
	Bytes         int64    `json:"memory_bytes"`
	Ranks         *Ranks   `json:"ranks,omitempty"`
	Time          *Time    `json:"time,omitempty"`                  // nil without a profile of the machine
	Untimed       string   `json:"untimed,omitempty"`               // why there is no Time
	Device        string   `json:"device"`                          // the device of the run
	Available     int64    `json:"available_bytes"`                 // 0 if unknown
	Offloaded     int64    `json:"offloaded_bytes,omitempty"`       // of optimizer state in a file, not in memory
	Inputs        int64    `json:"offloaded_input_bytes,omitempty"` // of inputs of recomputed segments, likewise
	Fits          bool     `json:"fits"`
	Least         *Least   `json:"least,omitempty"`            // devices that would be enough, if it does not fit
	Offloading    int64    `json:"offloading_bytes,omitempty"` // with memory.offload=optimizer, if it fits only then
	// how the CPU emulates the precision's arithmetic
	Emulated  string           `json:"emulated,omitempty"`
	Recompute string           `json:"recompute,omitempty"` // what memory.recompute keeps and what it recomputes
	Remark    string           `json:"remark,omitempty"`    // a note if the cost is unusual
	Mix       *prepare.MixPlan `json:"mix,omitempty"`       // the share that is read of each source of data.mix
	Packing   string           `json:"packing,omitempty"`   // the effect of data.packing, unless it is concat
	Order     string           `json:"order,omitempty"`     // the effect of data.order
	Unchecked string           `json:"unchecked,omitempty"` // what cannot be checked without data

	Read   []string `json:"-"` // notes on values that were interpreted differently from the text of the config
	Absent error    `json:"-"` // why the device cannot be used here; nil if it can

	given bool // the memory of a device was given
}

// Within plans a config for devices with the given bytes per rank, instead of for this machine.
func (f *Foresight) Within(cfg *config.Config, memory int64) {
	if f.Memory.Total() > memory { // without room for it, checkpoints are written without a copy
		f.Memory = f.Memory.withoutCopy()
		if f.Ranks != nil {
			for i, s := range f.Ranks.Mesh {
				f.Ranks.Mesh[i].Memory = s.Memory.withoutCopy()
			}
		}
	}
	f.Available, f.Bytes = memory, f.Memory.Total()
	if f.Ranks != nil {
		f.Ranks.Here = false
	}
	f.Time, f.Untimed = nil, "no time predicted: times are known for this machine only"
	f.given, f.Least, f.Offloading = true, nil, 0
	if f.Fits = f.Bytes <= memory; !f.Fits {
		f.Offloading = offloading(cfg, f.Memory, memory)
		f.Least = leastOf(cfg, train.AbsentDevice(cfg.Device), memory)
	}
}

// Remarks returns notes for the user, one per line.
func (f *Foresight) Remarks() []string {
	list := append(slices.Clone(f.Read), f.Unchecked, f.Packing, f.Order, f.Emulated, f.Remark, f.Recompute)
	list = append(list, f.Ranks.Remarks()...)
	if f.Absent != nil {
		reason, _, _ := strings.Cut(f.Absent.Error(), "\n")
		list = append(list, f.Device+" is not available here: "+reason)
	}
	if f.Mix != nil {
		list = append(list, f.Mix.Remarks()...)
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// Foresee derives the values that the config leaves to the data set, and computes what the run will need. A config for
// planning needs no data if it gives the size of the vocabulary; then only the epochs are unknown. Foresee allocates
// no memory for the run and writes nothing.
func Foresee(cfg *config.Config) (*Foresight, error) {
	f, p, err := outline(cfg)
	if err == nil && !f.Fits {
		f.Least, f.Offloading = leastCards(cfg), offloading(cfg, p.Memory, p.Available)
	}
	return f, err
}

// Outline is Foresee without the search for what would be enough if the run does not fit here. The search takes a
// second or two for large models.
func Outline(cfg *config.Config) (*Foresight, error) {
	f, _, err := outline(cfg)
	return f, err
}

func outline(cfg *config.Config) (*Foresight, *Plan, error) {
	if cfg == nil {
		return nil, nil, errors.New("there is no configuration to plan\n  make one with config.Load")
	}
	var data dataset.Utilisation
	var mix *prepare.MixPlan
	unchecked := ""
	if cfg.Planning() {
		unchecked = withoutData(cfg)
	}
	if unchecked == "" || cfg.Model.Vocab == 0 {
		var err error
		if data, mix, err = readData(cfg); err != nil && unchecked != "" {
			err = fmt.Errorf("%w\n  or name a vocabulary, such as model.vocab=32000, for a dry run without data", err)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	p, absent, err := planHere(cfg)
	if err != nil {
		return nil, nil, err
	}
	policy, err := precision.Lookup(cfg.Precision)
	if err != nil {
		return nil, nil, err
	}
	f := &Foresight{
		Device: p.Device, Absent: absent, Read: cfg.Remarks(), Unchecked: unchecked,
		Emulated:   policy.Emulated,
		Parameters: p.Parameters, Active: p.Active, FLOPsPerToken: p.FLOPsPerToken,
		Tokens: cfg.Tokens(),
		Ranks:  p.Ranks,
		Time:   p.Time, Untimed: p.Untimed,
		Memory: p.Memory, Bytes: p.Bytes(), Available: p.Available, Fits: p.Fits, Offloaded: p.Offloaded,
		Inputs: p.Inputs,
	}
	if cfg.Memory.Recompute.String() != "none" {
		f.Recompute = fmt.Sprintf("recompute %s, %s of activations",
			p.Recompute.Describe(cfg.Model.Layers), units.FormatBytes(p.Memory.Bytes("activations")))
	}
	if cfg.Parallel.Pipeline > 1 {
		m, err := MeshOf(cfg, f)
		if err != nil {
			return nil, nil, err
		}
		f.Ranks.Micro, f.Ranks.Waits = m.Micro, m.Idle
	}
	f.Remark = p.OptimizerRemark(cfg)
	if p.Offloaded > 0 {
		f.Read = append(f.Read, fmt.Sprintf("every step reads and writes %s of optimizer state in a file in %s "+
			"(memory.offload); the predicted time leaves that out",
			units.FormatBytes(p.Offloaded), cfg.Memory.OffloadDir))
	}
	if p.Inputs > 0 {
		f.Read = append(f.Read, fmt.Sprintf("every micro-batch writes and reads %s of inputs of recomputed segments "+
			"in a file in %s (memory.offload); the predicted time leaves that out",
			units.FormatBytes(p.Inputs), cfg.Memory.OffloadDir))
	}
	f.planData(data)
	f.Mix = mix
	f.Order = prepare.DescribeOrder(cfg, data.Rows)
	return f, p, nil
}

// planHere plans a run on the device of its configuration. If that is unavailable, absent says why.
func planHere(cfg *config.Config) (p *Plan, absent, err error) {
	dev, absent := train.OpenDevice(cfg, "", 0)
	if absent != nil {
		p, err = For(cfg, train.AbsentDevice(cfg.Device))
		return p, absent, err
	}
	defer dev.Close()
	if p, err = For(cfg, dev); err == nil {
		p.planTime(cfg, dev)
	}
	return p, nil, err
}

// offloading returns the memory that the run needs with its optimizer state in a file, or 0 if even that is more than
// the available bytes. needs is its memory without a file.
func offloading(cfg *config.Config, needs Estimate, available int64) int64 {
	if cfg.Memory.Offload.Has(config.OptimizerState) || needs.Total()-needs.Bytes(train.OptimizerState) > available {
		return 0
	}
	try := cfg.Clone()
	try.Memory.Offload = append(slices.Clone(cfg.Memory.Offload), config.OptimizerState)
	if try.Validate() != nil {
		return 0
	}
	with, absent, err := planHere(try)
	if err != nil || absent != nil {
		return 0
	}
	m := with.Memory
	if m.Total() > available {
		m = m.withoutCopy()
	}
	if m.Total() > available {
		return 0
	}
	return m.Total()
}

// withoutData says what cannot be checked if there is no data; it returns "" if there is.
func withoutData(cfg *config.Config) string {
	const what = "tokenizer, epochs, packing and order are not checked"
	if !cfg.HasData() {
		return "no data set was given: " + what
	}
	list, err := cfg.Sources()
	if err != nil {
		return "" // reading the data reports the error
	}
	for _, s := range list {
		if !dataset.Exists(s.Path) {
			return fmt.Sprintf("%s holds no data set: %s", s.Path, what)
		}
	}
	return ""
}

// readData derives the vocabulary from the data. It returns the effect of data.packing, and the share that the run
// reads of each source of a mix.
func readData(cfg *config.Config) (u dataset.Utilisation, mix *prepare.MixPlan, err error) {
	list, err := cfg.Sources()
	if err != nil {
		return u, nil, err
	}
	sources, vocab, err := prepare.MeasureSources(list, cfg.Data.Packing, cfg.Model.Context,
		func(d *dataset.Dataset) error { return prepare.CheckOrder(cfg, d) })
	if err != nil {
		return u, nil, err
	}
	if err := cfg.SetVocabulary(vocab, sources[0].Path); err != nil {
		return u, nil, err
	}
	if !cfg.Data.Mix.Given() {
		return sources[0].Use, nil, nil
	}
	m, err := cfg.Mix(prepare.RowsOf(sources))
	if err != nil {
		return u, nil, err
	}
	mix = prepare.NewMixPlan(sources, m, uint64(cfg.Tokens())/uint64(cfg.Model.Context), cfg.Model.Context)
	mix.Limit = cfg.UniMaxEpochs()
	return mix.Utilisation(), mix, nil
}

// planData computes how often the run reads the data, and the share of the computed tokens that have a target.
func (f *Foresight) planData(u dataset.Utilisation) {
	f.Trained = f.Tokens
	if u.Positions == 0 {
		return
	}
	f.Trained = int64(float64(f.Tokens) * u.Share())
	f.Epochs = float64(f.Tokens) / float64(u.Positions)
	if u.Packing != dataset.Concat {
		f.Packing = fmt.Sprintf("packing %s: %d rows an epoch, %.3f%% of their positions are trained on; "+
			"cut: %d documents split across rows; dropped: %d tokens not used; validation uses concat",
			u.Packing, u.Rows, 100*u.Share(), u.Cut, u.LeftOut)
	}
}
