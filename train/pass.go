package train

import (
	"context"

	"anneal/dataset"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
)

// Model returns the model in training.
func (t *Trainer) Model() *model.Decoder { return t.model }

// SetRecompute changes which layers backward recomputes, from the next step on.
func (t *Trainer) SetRecompute(l model.Layout) {
	t.model.SetRecompute(l)
	t.layChunks()
}

// Outline returns the whole model, without memory; this rank may have only a part of it.
func (t *Trainer) Outline() *model.Decoder { return t.outline }

// Policy returns the precision of the run.
func (t *Trainer) Policy() precision.Policy { return t.policy }

// Arenas returns the memory of the trainer, by name.
func (t *Trainer) Arenas() []*tensor.Arena { return t.arenas }

// Gradient computes the gradient of one micro-batch, whose samples start at first, and changes nothing else. A
// benchmark times it.
func (t *Trainer) Gradient(ctx context.Context, src dataset.Source, first uint64) error {
	t.accum = 1
	_, err := t.gradient(ctx, src, first)
	return err
}
