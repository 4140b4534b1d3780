package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/precision"
	"anneal/prepare"
	"anneal/tensor"
	"anneal/tokenizer"
)

// Trained is an opened run: its newest verified weights, its tokenizer and its configuration.
type Trained struct {
	Config    *config.Config
	Model     *model.Decoder
	Tokenizer *tokenizer.Tokenizer
	Step      int64
	Skipped   []error  // unusable newer checkpoints
	Changed   []string // keys of the model in config.yaml whose values are not those of the training: "key: was → now"

	dir      runDir
	imported bool // other tools made the model
	average  bool // the weights are the moving average
	trained  int  // context of training
	policy   precision.Policy
	dev      device.Device
	lent     bool // the device belongs to the caller
	params   *tensor.Arena
}

// OpenOptions changes how a run is opened. The zero value opens it unchanged.
type OpenOptions struct {
	Device  string // as in the config; "" is the CPU, wherever the run was trained
	Threads int    // of the CPU; 0 uses the run's number
	Average bool   // use the exponential moving average of the weights

	// AllowOlder uses an older checkpoint if the newest is damaged, otherwise a *checkpoint.OlderError, and the last
	// one before the run diverged, otherwise a *DivergedRunError.
	AllowOlder bool
	Reach

	on device.Device // an open device, not closed with the run; nil opens one
}

// Open loads the run in dir. The caller closes it.
func Open(dir string, threads int) (*Trained, error) {
	return OpenWith(dir, OpenOptions{Threads: threads})
}

// OpenWith loads the run in dir with options o. The caller closes it.
func OpenWith(dir string, o OpenOptions) (*Trained, error) {
	cfg, err := runDir(dir).load()
	if err != nil {
		return nil, err
	}
	if o.Average && cfg.Average.EMA == 0 {
		return nil, config.Problem{
			Key: "average.ema", Message: fmt.Sprintf("%s keeps no moving average of its weights: average.ema = 0", dir), At: runDir(dir).config(),
			Try: fmt.Sprintf("`anneal ckpt average %s --last 3 --out …`, which averages checkpoints instead", dir),
		}
	}
	r := &Trained{Config: cfg, dir: runDir(dir), average: o.Average}
	if err := r.open(o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Trained) open(o OpenOptions) (err error) {
	if r.Tokenizer, err = tokenizer.Load(r.dir.tokenizer()); err != nil {
		return &dataset.Error{Err: err}
	}
	if r.Config.Model.Vocab == 0 {
		r.Config.Derive("model.vocab", r.Tokenizer.VocabSize(), "the tokenizer of "+string(r.dir))
	}
	if err := checkVocabulary(r.Tokenizer, r.dir.tokenizer(), r.Config.Model.Vocab); err != nil {
		return err
	}
	if r.policy, err = policyOf(r.Config); err != nil {
		return err
	}
	was, read := r.Config.Model, *r.Config
	r.trained = was.Context
	context, err := o.Reach.apply(r.Config)
	if err != nil {
		return err
	}
	if r.dev, r.lent = o.on, o.on != nil; !r.lent {
		if r.dev, err = OpenDevice(r.Config, cmp.Or(o.Device, "cpu"), o.Threads); err != nil {
			return err
		}
	}
	if r.average {
		r.policy.Weight = r.policy.Master // averages are not rounded
	}
	c := modelConfig(r.Config)
	c.LogitBytes = r.dev.LogitBytes()
	need := model.Measure(c, r.policy, 1, c.Context, false)
	if r.params, err = r.dev.NewArena("parameters", need.Params); err != nil {
		return err
	}
	r.Model = model.New(c, model.MemoryOf(r.dev, r.policy, r.params, nil))
	var last state
	tensors := weightTensors(r.dev, r.Model)
	if r.average {
		tensors = tensors[:0]
		for _, p := range r.Model.Params() {
			tensors = append(tensors, averageTensor(r.dev, p.Name, &p.Value))
		}
	}
	info, err := checkpoint.LoadLatest(r.dir.checkpoints(), tensors, &last)
	if errors.Is(err, checkpoint.ErrNone) {
		return fmt.Errorf("%w\n  the run has not saved yet: it saves every checkpoint.every steps, when it is stopped and at its end", err)
	}
	if err != nil {
		return asConfigError(err, was, r.dir)
	}
	if err := info.Newest(r.dir.checkpoints()); err != nil && !o.AllowOlder {
		return err
	}
	if err := r.dir.checkOrigin(info); err != nil {
		return err
	}
	if err := last.checkModel(was, r.dir); err != nil {
		return err
	}
	if err := last.checkTokenizer(r.Tokenizer, r.dir); err != nil {
		return err
	}
	if err := r.dir.checkFinite(info.Step, tensors); err != nil {
		return err
	}
	if err := r.dir.checkDiverged(info.Step); err != nil && !o.AllowOlder {
		return err
	}
	if _, err := r.Tokenizer.EndOfText(); err != nil && !errors.Is(err, tokenizer.ErrNoEndOfText) {
		return &dataset.Error{Err: err}
	}
	r.imported = last.Imported
	if err := r.placeAround(); err != nil {
		return &dataset.Error{Err: err}
	}
	r.Step, r.Skipped = info.Step, info.Skipped
	if last.Config != nil {
		r.Changed = slices.DeleteFunc(Changes(last.Config, &read), func(change string) bool {
			return !strings.HasPrefix(change, "model.") && !strings.HasPrefix(change, "precision:")
		})
	}
	r.Config.Model.Context, r.Model.Config.Context = context, context // may be less than the table of learned positions
	return nil
}

// Context returns the length of the model's rows in tokens: the training context unless it was opened otherwise.
func (r *Trained) Context() int { return r.Model.Config.Context }

// checkVocabulary returns an error for a tokenizer with more ids than the model has rows.
func checkVocabulary(tok *tokenizer.Tokenizer, path string, vocab int) error {
	if n := tok.VocabSize(); n > vocab {
		return &dataset.Error{Err: fmt.Errorf("%s has %d tokens, but the model has %d\n  restore the tokenizer that the model was trained with", path, n, vocab)}
	}
	return nil
}

// Close frees the model's memory.
func (r *Trained) Close() {
	if r.params != nil {
		r.params.Close()
	}
	if r.dev != nil && !r.lent {
		r.dev.Close()
	}
}

// Evaluate scores the validation split of the data set in dir, which must have been built with the run's tokenizer:
// its first limit tokens, or all if limit is 0. onProgress takes the tokens done and in total; it may be nil.
func (r *Trained) Evaluate(ctx context.Context, dir string, limit int, onProgress func(done, total int64)) (EvalResult, error) {
	return r.EvaluateSources(ctx, []config.Source{{Path: dir}}, limit, onProgress)
}

// EvaluateSources scores the validation splits of several data sets like those of a mix, with equal parts of the
// limit.
func (r *Trained) EvaluateSources(ctx context.Context, sources []config.Source, limit int, onProgress func(done, total int64)) (EvalResult, error) {
	c, e, err := r.evaluatorOf(sources)
	if err != nil {
		return EvalResult{}, err
	}
	defer c.Close()
	defer e.close()
	e.onProgress, e.exact = onProgress, true
	if r.Context() > r.trained {
		e.every = r.trained
	}
	text, err := c.HeldOut(r.Context())
	if err != nil {
		return EvalResult{}, err
	}
	result, err := e.evaluate(ctx, text, limit)
	if err == nil && len(result.Textless) > 0 {
		err = &dataset.Error{Err: textlessError(result.Textless)}
	}
	if err == nil && result.Tokens == 0 {
		err = &dataset.Error{Err: fmt.Errorf("%s: %w, so there is nothing to measure\n  build one with `anneal data build --val 0.01`", c.First.Dir, dataset.ErrNoValidation)}
	}
	if err == nil {
		err = r.checkLoss(result)
	}
	return result, err
}

func textlessError(dirs []string) error {
	return fmt.Errorf("no target in the validation split of %s stands for text: all of the held-out text is in prompts, so there are no bits per byte\n"+
		"  hold out more with --val of `anneal data build`, or look at its --prompt-end", strings.Join(dirs, ", "))
}

// evaluatorOf opens data sets, which must have been built with the run's tokenizer, and allocates the memory to
// evaluate the model on them. The caller closes both.
func (r *Trained) evaluatorOf(sources []config.Source) (*prepare.Corpus, *evaluator, error) {
	cfg := *r.Config
	cfg.SetSources(sources)
	c, err := prepare.OpenCorpus(&cfg)
	if err != nil {
		return nil, nil, err
	}
	if a, b := r.Tokenizer.Hash(), c.Tokenizer.Hash(); a != b {
		c.Close()
		return nil, nil, &dataset.Error{Err: fmt.Errorf("%s was built with tokenizer %.12s…, but the run %s uses %.12s…\n  rebuild the data with `anneal data build --tokenizer %s`", c.First.Dir, b, r.dir, a, r.dir.tokenizer())}
	}
	if eot, err := r.Tokenizer.EndOfText(); err == nil && eot != c.First.Manifest.Tokenizer.EOT {
		c.Close()
		return nil, nil, &dataset.Error{Err: fmt.Errorf("in %s a text ends with %s, but for the run %s with %s\n  rebuild the data with `anneal data build --tokenizer %s`",
			c.First.Dir, c.Tokenizer.Token(c.First.Manifest.Tokenizer.EOT), r.dir, r.Tokenizer.Token(eot), r.dir.tokenizer())}
	}
	e, err := newEvaluator(&cfg, r.policy, r.dev, r.Model)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, e, nil
}
