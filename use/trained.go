package use

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/prepare"
	"anneal/run"
	"anneal/tensor"
	"anneal/train"
)

// Trained is an opened run: its newest verified weights, its tokenizer and its configuration.
//
// One goroutine at a time may use it, with its Texts, Schedulers and servers: all compute on one device. Programs with
// several goroutines take turns, or open the run once for each; a [Scheduler] continues many texts in one pass.
//
// After Close, its methods and those of its Texts and Schedulers that need the weights return [ErrClosed].
type Trained struct {
	*run.Weights

	dev    device.Device
	eight  *tensor.Arena // weights in 8 bits; nil without them
	closed bool
}

// ErrClosed means that a Trained, or a Text or Scheduler of it, was used after Close.
var ErrClosed = errors.New("the model, or what was made of it, is closed\n  call Close after the last use")

// OpenOptions changes how a run is opened. The zero value opens it unchanged.
type OpenOptions struct {
	Device  string // as in the config; "" is the CPU, wherever the run was trained
	Threads int    // of the CPU; 0 uses the run's number
	run.WeightOptions
	Reach
	// Eight rounds the weights of products to 8 bits, with a scale for every 32 weights (GGUF's Q8_0). The device must
	// be the CPU.
	Eight bool
	// Apart keeps the adapters of DoRA separate from their weights, which costs the product of both for every token.
	Apart bool
}

// Open loads the run in dir. The caller closes it.
func Open(dir string, threads int) (*Trained, error) {
	return OpenWith(dir, OpenOptions{Threads: threads})
}

// OpenWith loads the run in dir with options o. The caller closes it.
func OpenWith(dir string, o OpenOptions) (*Trained, error) {
	w, err := run.OpenWeights(dir, o.WeightOptions)
	if err != nil {
		return nil, err
	}
	r := &Trained{Weights: w}
	if err := r.open(o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Trained) open(o OpenOptions) error {
	context, err := o.Reach.apply(r.Config)
	if err != nil {
		return err
	}
	if r.dev, err = train.OpenDevice(r.Config, cmp.Or(o.Device, "cpu"), o.Threads); err != nil {
		return err
	}
	if err := r.Load(r.dev); err != nil {
		return err
	}
	if err := r.placeAround(); err != nil {
		return &dataset.Error{Err: err}
	}
	if r.Model.Config.LoRADora && !o.Apart {
		r.MergeAdapters()
	}
	if o.Eight {
		if err := r.holdEight(); err != nil {
			return err
		}
	}
	r.Config.Model.Context, r.Model.Config.Context = context, context // may be less than the table of learned positions
	return nil
}

// MergeAdapters adds the adapters of the model, if it has any, to their weights.
func (r *Trained) MergeAdapters() {
	if r.Model.Config.LoRARank > 0 {
		r.Model.Merge(r.dev)
	}
}

func (r *Trained) holdEight() (err error) {
	if r.dev.Apart() {
		return config.Problem{Message: "weights in 8 bits are multiplied by the CPU only", Try: "--device cpu"}
	}
	if r.eight, err = r.Model.HoldEight(r.Policy, r.dev); err != nil {
		return config.Problem{Message: err.Error(), Try: "the weights as they are"}
	}
	return nil
}

// Through replaces the model's device by wrap's result, which sees every kernel call from now on and must pass on
// every call to the original device.
func (r *Trained) Through(wrap func(device.Device) device.Device) { r.dev = wrap(r.dev) }

// Numbers describes the formats that the model computes in, for the user: BF16, or BF16 with weights in 8 bits.
func (r *Trained) Numbers() string {
	name := strings.ToUpper(r.Config.Precision)
	if r.eight != nil {
		name += " with weights in 8 bits"
	}
	return name
}

// Context returns the length of the model's rows in tokens: the training context unless it was opened otherwise.
func (r *Trained) Context() int { return r.Model.Config.Context }

// FreeMemory returns how many bytes are available on the model's device; 0 if unknown.
func (r *Trained) FreeMemory() int64 {
	if r.closed {
		return 0
	}
	return r.dev.FreeMemory()
}

// WriteAs is [run.Weights.WriteAs].
func (r *Trained) WriteAs(out, command string) (hash string, err error) {
	if err := r.usable(); err != nil {
		return "", err
	}
	if err := train.Wait(r.dev); err != nil {
		return "", err
	}
	return r.Weights.WriteAs(out, command)
}

// usable returns ErrClosed after Close.
func (r *Trained) usable() error {
	if r.closed {
		return ErrClosed
	}
	return nil
}

// Close frees the model's memory. A second call does nothing.
func (r *Trained) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.Weights.Close()
	if r.eight != nil {
		r.eight.Close()
	}
	if r.dev != nil {
		r.dev.Close()
	}
}

// Evaluate scores the validation split of the data set in dir, which must have been built with the run's tokenizer:
// its first limit tokens, or all if limit is 0. onProgress takes the tokens done and in total; it may be nil.
func (r *Trained) Evaluate(ctx context.Context, dir string, limit int,
	onProgress func(done, total int64)) (train.EvalResult, error) {
	return r.EvaluateSources(ctx, []config.Source{{Path: dir}}, limit, onProgress)
}

// EvaluateSources scores the validation splits of several data sets like those of a mix, with equal parts of the
// limit. There must be at least one.
func (r *Trained) EvaluateSources(ctx context.Context, sources []config.Source, limit int,
	onProgress func(done, total int64)) (train.EvalResult, error) {
	return r.EvaluateSplit(ctx, sources, false, limit, onProgress)
}

// EvaluateSplit is EvaluateSources, or scores the training splits.
func (r *Trained) EvaluateSplit(ctx context.Context, sources []config.Source, trained bool, limit int,
	onProgress func(done, total int64)) (train.EvalResult, error) {
	if len(sources) == 0 {
		return train.EvalResult{}, errors.New("there is no data set to evaluate on\n  name at least one source")
	}
	if limit < 0 {
		return train.EvalResult{}, fmt.Errorf("the limit of an evaluation is %d tokens, which is negative\n"+
			"  try 0 for all", limit)
	}
	c, e, err := r.evaluatorOf(sources)
	if err != nil {
		return train.EvalResult{}, err
	}
	defer c.Close()
	defer e.Close()
	e.OnProgress, e.Exact, e.Answers = onProgress, true, true
	if r.Context() > r.Trained.Context {
		e.Every = r.Trained.Context
	}
	split := c.HeldOut
	if trained {
		split = c.Trained
	}
	text, err := split(r.Context())
	if err != nil {
		return train.EvalResult{}, err
	}
	result, err := e.Evaluate(ctx, text, limit)
	if err == nil && len(result.Textless) > 0 {
		err = &dataset.Error{Err: result.NoText()}
	}
	if err == nil && result.Tokens == 0 {
		err = &dataset.Error{Err: fmt.Errorf("%s: %w, so there is nothing to measure\n"+
			"  build one with `anneal data build --val 0.01`", c.First.Dir, dataset.ErrNoValidation)}
	}
	if err == nil {
		err = r.checkLoss(result)
	}
	return result, err
}

// evaluatorOf opens data sets, which must have been built with the run's tokenizer, and allocates the memory to
// evaluate the model on them. The caller closes both.
func (r *Trained) evaluatorOf(sources []config.Source) (*prepare.Corpus, *train.Evaluator, error) {
	if err := r.usable(); err != nil {
		return nil, nil, err
	}
	cfg := *r.Config
	c, err := openSources(&cfg, sources)
	if err != nil {
		return nil, nil, err
	}
	if a, b := r.Tokenizer.Hash(), c.Tokenizer.Hash(); a != b {
		c.Close()
		return nil, nil, &dataset.Error{Err: fmt.Errorf("%s was built with tokenizer %.12s…, "+
			"but the run %s uses %.12s…\n  rebuild the data with `anneal data build --tokenizer %s`",
			c.First.Dir, b, r.Path(), a, r.TokenizerPath())}
	}
	if eot, err := r.Tokenizer.EndOfText(); err == nil && eot != c.First.Manifest.Tokenizer.EOT {
		c.Close()
		return nil, nil, &dataset.Error{Err: fmt.Errorf("in %s a text ends with %s, but for the run %s with %s\n"+
			"  rebuild the data with `anneal data build --tokenizer %s`",
			c.First.Dir, c.Tokenizer.Token(c.First.Manifest.Tokenizer.EOT), r.Path(), r.Tokenizer.Token(eot),
			r.TokenizerPath())}
	}
	e, err := train.NewEvaluator(&cfg, r.Policy, r.dev, r.Model)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, e, nil
}

// openSources opens data sets as a corpus, with cfg as that of a run on the first one. The text form of a mix would not
// take paths with commas.
func openSources(cfg *config.Config, sources []config.Source) (*prepare.Corpus, error) {
	cfg.SetSources(sources[:1])
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		return nil, err
	}
	c.Sources[0].Name = cmp.Or(sources[0].Name, c.Sources[0].Name)
	sets := []*dataset.Dataset{c.First}
	for _, s := range sources[1:] {
		set, err := dataset.Open(s.Path)
		if err != nil {
			c.Close()
			return nil, &dataset.Error{Err: err}
		}
		sets, c.Sources = append(sets, set), append(c.Sources, prepare.Source{Source: s, Set: set})
	}
	if err := dataset.SameTokenizer(sets); err != nil {
		c.Close()
		return nil, &dataset.Error{Err: err}
	}
	return c, nil
}

// checkLoss returns a *DivergedRunError if the loss of an evaluation is not finite.
func (r *Trained) checkLoss(e train.EvalResult) error {
	if !math.IsNaN(e.Loss) && !math.IsInf(e.Loss, 0) {
		return nil
	}
	return &run.DivergedRunError{
		Message: fmt.Sprintf("%s diverged: the weights of step %d are finite, but their loss is %g",
			r.Path(), r.Step, e.Loss),
		Try: fmt.Sprintf("take it back to an earlier step with `anneal rewind %s --to N`", r.Path()),
	}
}
