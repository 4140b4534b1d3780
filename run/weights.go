package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/hf"
	"anneal/interop"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train"
)

// Weights are the weights of a run with its tokenizer and configuration. They come from the newest verified
// checkpoint, or from that of the step in WeightOptions.
type Weights struct {
	Config    *config.Config
	Policy    precision.Policy
	Tokenizer *tokenizer.Tokenizer
	Model     *model.Decoder // nil before Load
	Trained   model.Config   // the model that the weights were trained in
	Imported  bool           // other tools made the model
	Step      int64
	Skipped   []error  // unusable newer checkpoints
	Changed   []string // keys of the model whose values have changed since the training: "key: was → now"

	o      WeightOptions
	dir    runDir
	read   config.Config // as config.yaml says
	last   state         // of the checkpoint
	params *tensor.Arena
}

// WeightOptions says which weights to load.
type WeightOptions struct {
	Average bool  // load the exponential moving average of the weights
	Step    int64 // load the checkpoint of this step; 0 is the newest

	// AllowOlder uses an older checkpoint if the newest is damaged, and the last one before divergence if the run
	// diverged. Without it these are errors: a *checkpoint.OlderError and a *DivergedRunError.
	AllowOlder bool
}

// OpenWeights reads everything about the run in dir except its weights, which Load reads. Before Load, the caller may
// change keys of the model of Config that do not affect the weights.
func OpenWeights(dir string, o WeightOptions) (*Weights, error) {
	d := runDir(dir)
	cfg, err := d.load()
	if err != nil {
		return nil, err
	}
	if o.Average && cfg.Average.EMA == 0 {
		return nil, d.noAverage(cfg)
	}
	w := &Weights{Config: cfg, o: o, dir: d}
	if w.Tokenizer, err = tokenizer.Load(d.tokenizer()); err != nil {
		return nil, &dataset.Error{Err: err}
	}
	if cfg.Model.Vocab == 0 {
		cfg.Derive("model.vocab", w.Tokenizer.VocabSize(), "the tokenizer of "+dir)
	}
	if err := checkVocabulary(w.Tokenizer, d.tokenizer(), cfg.Model.Vocab); err != nil {
		return nil, err
	}
	if w.Policy, err = train.PolicyOf(cfg); err != nil {
		return nil, err
	}
	if o.Average {
		w.Policy.Weight = w.Policy.Master // averages are not rounded
	}
	w.Trained, w.read = cfg.Model, *cfg
	return w, nil
}

// noAverage is the error that the run has no moving average of its weights.
func (d runDir) noAverage(cfg *config.Config) error {
	p := config.Problem{
		Key: "average.ema", Message: fmt.Sprintf("%s keeps no moving average of its weights: average.ema = 0", d),
		At: d.config(), Try: "the last weights, or `anneal ckpt average` if a run has several checkpoints",
	}
	list, err := checkpoint.List(d.checkpoints())
	switch made := cfg.Origin("average.ema").Rule; {
	case refuseWeights(d) == nil:
		if err == nil && len(list) > 1 {
			p.Try = fmt.Sprintf("`anneal ckpt average %s --last %d --out …`, which averages checkpoints instead",
				d.word(), min(len(list), 3))
		}
	case made != "": // the command that made them from the weights of a run
		p.Message = fmt.Sprintf("%s has no moving average of weights: it holds only those that `%s` wrote", d, made)
		p.Try = "the last weights, which are these, or the moving average of the run that they were made from"
	default:
		p.Message = fmt.Sprintf("%s has no moving average of weights: it holds only imported weights", d)
		p.Try = "the last weights, which are these"
	}
	return p
}

// Path returns the directory of the run.
func (w *Weights) Path() string { return string(w.dir) }

// ConfigPath returns the file of the run's configuration.
func (w *Weights) ConfigPath() string { return w.dir.config() }

// TokenizerPath returns the file of the run's tokenizer.
func (w *Weights) TokenizerPath() string { return w.dir.tokenizer() }

// SpecialTokens returns the special tokens of the model: for an imported one those that its source named. Each of EOS
// ends a text.
func (w *Weights) SpecialTokens() hf.Tokens {
	if w.last.Special != nil {
		return *w.last.Special
	}
	return interop.Tokens(w.Tokenizer)
}

// ChatTemplate returns the chat template of an imported model, as from [hf.ChatTemplate].
func (w *Weights) ChatTemplate() any { return w.last.ChatTemplate }

// Load reads the weights into the memory of a device, and checks that they are the run's and finite.
func (w *Weights) Load(dev device.Device) (err error) {
	c := w.Config.Model
	c.LogitBytes = dev.LogitBytes()
	need := model.Measure(c, w.Policy, 1, c.Context, false)
	if w.params, err = dev.NewArena("parameters", need.Params); err != nil {
		return err
	}
	w.Model = model.New(c, model.MemoryOf(dev, w.Policy, w.params, nil))
	live := train.ModelTensors(dev, w.Model)
	if w.o.Average {
		live = train.AverageTensors(dev, w.Model)
	}
	var last state
	tensors := checkpointTensors(live)
	info, err := w.load(tensors, &last)
	if errors.Is(err, checkpoint.ErrNone) && w.o.Step == 0 {
		return fmt.Errorf("%w\n  the run has not saved yet: it saves every checkpoint.every steps, when it is stopped "+
			"and at its end", err)
	}
	if err != nil {
		return asConfigError(err, w.Trained, w.dir)
	}
	if err := w.check(info, &last, tensors); err != nil {
		return err
	}
	w.Imported, w.Step, w.Skipped, w.last = last.Imported, info.Step, info.Skipped, last
	if last.Config != nil {
		w.Changed = slices.DeleteFunc(Changes(last.Config, &w.read), func(change string) bool {
			return !strings.HasPrefix(change, "model.") && !strings.HasPrefix(change, "precision:")
		})
	}
	return nil
}

// load reads the requested checkpoint.
func (w *Weights) load(tensors []checkpoint.Tensor, last *state) (checkpoint.Info, error) {
	if w.o.Step > 0 {
		return checkpoint.LoadStep(w.dir.checkpoints(), w.o.Step, tensors, last)
	}
	return checkpoint.LoadLatest(w.dir.checkpoints(), tensors, last)
}

// check returns an error if a loaded checkpoint should not be used.
func (w *Weights) check(info checkpoint.Info, last *state, tensors []checkpoint.Tensor) error {
	if err := info.Newest(w.dir.checkpoints()); err != nil && !w.o.AllowOlder && w.o.Step == 0 {
		return err
	}
	if err := w.dir.checkOrigin(info); err != nil {
		return err
	}
	if err := last.checkModel(w.Trained, w.dir); err != nil {
		return err
	}
	if err := last.checkTokenizer(w.Tokenizer, w.dir); err != nil {
		return err
	}
	if err := w.dir.checkFinite(info.Step, tensors); err != nil {
		return err
	}
	if err := w.dir.checkDiverged(info.Step); err != nil && !w.o.AllowOlder {
		return err
	}
	if _, err := w.Tokenizer.EndOfText(); err != nil && !errors.Is(err, tokenizer.ErrNoEndOfText) {
		return &dataset.Error{Err: err}
	}
	return nil
}

// WriteAs makes a run in out with the present weights of w.Model, made by a command, for generate, eval and export.
// The run has no optimizer state and cannot be resumed. The weights must be in host memory. WriteAs returns their
// hash. If adapters were merged, the run has none.
func (w *Weights) WriteAs(out, command string) (hash string, err error) {
	if err := CheckNewRun(out); err != nil {
		return "", err
	}
	cfg, last := w.read.Clone(), w.last
	if cfg.Model.LoRARank > 0 && w.Model.Config.LoRARank == 0 {
		cfg.RemoveAdapters(command)
		last.Model.RemoveAdapters()
	}
	return runDir(out).derive(w.dir, cfg, w.Tokenizer, &last, w.Model, command)
}

// Close frees the memory of the weights.
func (w *Weights) Close() {
	if w.params != nil {
		w.params.Close()
	}
}
