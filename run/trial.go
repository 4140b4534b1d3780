package run

import (
	"context"
	"errors"

	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/prepare"
	"anneal/train"
)

// A Trial is a run in memory: the steps of a configuration without a run directory, for training many small models
// that are not kept.
type Trial struct {
	dev     device.Device
	corpus  *prepare.Corpus // nil if the data comes from another source
	trainer *train.Trainer
	src     dataset.Source
}

// NewTrial prepares the first step of a valid configuration on its data set, or on src if that is not nil;
// model.vocab must then be set. observe, unless nil, wraps the device, so that it sees every kernel call.
func NewTrial(cfg *config.Config, src dataset.Source, observe func(device.Device) device.Device) (*Trial, error) {
	if cfg == nil {
		return nil, errNoConfig
	}
	t := &Trial{src: src}
	if err := t.open(cfg, observe); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trial) open(cfg *config.Config, observe func(device.Device) device.Device) (err error) {
	if t.src == nil {
		if t.corpus, err = prepare.OpenCorpus(cfg); err != nil {
			return err
		}
		if err = t.corpus.OpenTraining(cfg); err != nil {
			return err
		}
		t.src = t.corpus.Train
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	if t.dev, err = train.OpenDevice(cfg, "", 0); err != nil {
		return err
	}
	dev := t.dev
	if observe != nil {
		dev = observe(dev)
	}
	if cfg.Distill.On() {
		if err := t.findTeacher(cfg); err != nil {
			return err
		}
	}
	if t.trainer, err = train.New(cfg, dev); err != nil {
		return err
	}
	if cfg.Distill.On() {
		if err := loadTeacher(t.trainer, cfg, t.corpus); err != nil {
			return err
		}
	}
	if cfg.Init.From == "" {
		return nil
	}
	return startFrom(t.trainer, cfg, t.corpus, group{Comm: comm.Alone{}})
}

// findTeacher reads the shape of the teacher, which needs data with its tokenizer.
func (t *Trial) findTeacher(cfg *config.Config) error {
	if t.corpus == nil {
		return errors.New("a trial without a data set cannot have a teacher")
	}
	return takeTeacher(cfg)
}

// Close frees the trial's memory.
func (t *Trial) Close() {
	if t.trainer != nil {
		t.trainer.Close()
	}
	if t.dev != nil {
		t.dev.Close()
	}
	if t.corpus != nil {
		t.corpus.Close()
	}
}

// Step makes one optimizer step.
func (t *Trial) Step(ctx context.Context) (train.Event, error) { return t.trainer.Step(ctx, t.src) }

// Look runs the model forward over the first micro-batch of the next step, for an observer; it changes nothing.
func (t *Trial) Look() error {
	_, _, err := t.trainer.Losses(t.src, t.trainer.Position().Sample)
	return err
}

// Evaluate scores the first limit tokens of the data set's validation split, or all if limit is 0.
func (t *Trial) Evaluate(ctx context.Context, limit int) (train.EvalResult, error) {
	if t.corpus == nil {
		return train.Unevaluated, errors.New("a trial without a data set cannot be evaluated")
	}
	text, err := t.corpus.HeldOut(t.trainer.Model().Config.Context)
	if err != nil {
		return train.Unevaluated, err
	}
	return t.trainer.Evaluate(ctx, text, limit)
}
