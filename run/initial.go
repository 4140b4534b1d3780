package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/interop"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train"
)

// initial is a model whose weights a run can start from: a run, or a model in the Hugging Face layout. Only load reads
// the weights.
type initial struct {
	dir       string
	config    *config.Config // of the model
	tokenizer *tokenizer.Tokenizer
	path      string // of the tokenizer
	run       bool
	step      int64 // of a run's checkpoint
}

// source names the weights in messages and in the origins of keys.
func (w *initial) source() string { return "the weights of " + w.dir }

// openInitial determines the kind of i.From and reads everything except its weights.
func openInitial(i config.Init) (*initial, error) {
	w := &initial{dir: i.From}
	var err error
	switch {
	case Exists(w.dir):
		w.run, w.path = true, runDir(w.dir).tokenizer()
		err = w.openRun(int64(i.Step))
	case isFile(filepath.Join(w.dir, "config.json")):
		w.path = filepath.Join(w.dir, "tokenizer.json")
		if i.Step != 0 {
			return nil, config.Problem{
				Key: "init.step", Message: fmt.Sprintf("init.step = %d, but %s is not a run and has no steps",
					i.Step, w.dir),
				Try: "removing init.step",
			}
		}
		if w.config, err = configOf(w.dir); err != nil {
			err = &dataset.Error{Err: fmt.Errorf("%s: %w", w.dir, err)}
		}
	default:
		message := w.dir + " is neither a run (config.yaml) nor a Hugging Face model (config.json)"
		if _, err := os.Stat(w.dir); errors.Is(err, fs.ErrNotExist) {
			message = fmt.Sprintf("there are no weights to start from: %s does not exist", w.dir)
		} else if err != nil {
			message = fmt.Sprintf("there are no weights to start from: %v", err)
		}
		return nil, config.Problem{
			Key: "init.from", Message: message, Try: "the directory of a run, or of a model with its config.json",
		}
	}
	if err != nil {
		return nil, err
	}
	if w.tokenizer, err = tokenizer.Load(w.path); err != nil {
		return nil, &dataset.Error{Err: err}
	}
	if w.config.Model.Vocab == 0 {
		w.config.Derive("model.vocab", w.tokenizer.VocabSize(), "the tokenizer of "+w.dir)
	}
	return w, checkVocabulary(w.tokenizer, w.path, w.config.Model.Vocab)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}

// openRun reads the configuration of the run and finds the checkpoint of a step, or the newest if step is 0.
func (w *initial) openRun(step int64) (err error) {
	d := runDir(w.dir)
	if w.config, err = d.load(); err != nil {
		return err
	}
	var last state
	var info checkpoint.Info
	if step > 0 {
		info, err = checkpoint.LoadStepState(d.checkpoints(), step, &last)
	} else {
		info, err = checkpoint.LoadState(d.checkpoints(), &last)
	}
	if err == nil {
		err = info.Newest(d.checkpoints())
	}
	if err == nil && step == 0 { // a step that is named is used even if the run diverged
		err = d.checkDiverged(info.Step)
	}
	if err != nil {
		return err
	}
	if err := d.checkOrigin(info); err != nil {
		return err
	}
	w.step = info.Step
	return last.checkModel(w.config.Model, d)
}

// load reads the weights into host memory, which the caller frees.
func (w *initial) load() (*model.Decoder, *tensor.Arena, error) {
	if !w.run {
		fp32, err := precision.Lookup("fp32")
		if err != nil {
			return nil, nil, err
		}
		m, params, err := interop.Load(w.dir, fp32, device.Host{})
		if err != nil {
			return nil, nil, &dataset.Error{Err: err}
		}
		return m, params, nil
	}
	policy, err := train.PolicyOf(w.config)
	if err != nil {
		return nil, nil, err
	}
	c := w.config.Model
	params, err := tensor.NewArena("parameters", model.Measure(c, policy, 1, c.Context, false).Params)
	if err != nil {
		return nil, nil, err
	}
	m := model.New(c, model.MemoryOf(device.Host{}, policy, params, nil))
	var then state
	d := runDir(w.dir)
	_, err = checkpoint.LoadStep(d.checkpoints(), w.step, weightTensors(m), &then)
	if err == nil {
		err = then.checkTokenizer(w.tokenizer, d)
	}
	if err != nil {
		params.Close()
		return nil, nil, asConfigError(err, w.config.Model, d)
	}
	return m, params, nil
}

// checkVocabulary returns an error for a tokenizer with more ids than the model has rows.
func checkVocabulary(tok *tokenizer.Tokenizer, path string, vocab int) error {
	if n := tok.VocabSize(); n > vocab {
		return &dataset.Error{Err: fmt.Errorf("%s has %d tokens, but the model has %d\n"+
			"  restore the tokenizer that the model was trained with", path, n, vocab)}
	}
	return nil
}
