package dataset

import "errors"

// HeldOut is text to evaluate a model on: the validation splits of data sets that share a tokenizer.
type HeldOut struct {
	Splits     []Split // one for each data set, in their order
	TokenBytes []int32 // [V] bytes of text per token, 0 for special tokens
}

// Split is the validation split of a data set.
type Split struct {
	Name   string  // of the data set in a mix
	Loader *Loader // nil if the data set has no validation split
}

// HeldOut opens the validation split of d in samples of context tokens, packed by kind.
func (d *Dataset) HeldOut(name string, kind Packing, context int) (Split, error) {
	val, err := d.ValRows(kind, context)
	if errors.Is(err, ErrNoValidation) {
		return Split{Name: name}, nil
	}
	return Split{name, val}, err
}
