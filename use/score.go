package use

import (
	"context"
	"slices"

	"anneal/dataset"
	"anneal/tasks"
	"anneal/train"
)

// A Score says how well a model predicts a text.
type Score struct {
	LogProb     float64 `json:"log_prob"` // of all tokens except the very first, in nats
	Tokens      int     `json:"tokens"`   // that were predicted
	Bytes       int     `json:"bytes"`    // of the text
	BitsPerByte float64 `json:"bits_per_byte"`
}

// Score scores texts independently, with the beginning that documents of the training data have; if they have none, it
// is the token that ends a text. Without such a token the first token of a text is not scored, nor do its bytes count.
// A text with more tokens than the context is scored in pieces of the context's length, each of which sees only its own
// tokens. For an empty text without tokens around it, the error is ErrNoText.
func (r *Trained) Score(ctx context.Context, texts ...string) ([]Score, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	scores := make([]Score, len(texts))
	var list []tasks.Sequence
	var of []int // by sequence: the text
	for i, text := range texts {
		ids, err := r.Encode(text, false)
		if err != nil {
			return nil, err
		}
		bytes := len(text)
		if before, _ := r.Tokenizer.Around(); len(before) == 0 {
			if end := r.end(); end >= 0 {
				ids = slices.Insert(ids, 0, end)
			} else if text != "" {
				bytes -= len(r.Tokenizer.Token(uint32(ids[0])))
			}
		}
		scores[i] = Score{Tokens: len(ids) - 1, Bytes: bytes}
		for from := 0; from+1 < len(ids); from += r.Context() {
			list = append(list, tasks.Sequence{IDs: ids[from:min(from+r.Context()+1, len(ids))], From: 1})
			of = append(of, i)
		}
	}
	e, err := train.NewEvaluator(r.Config, r.Policy, r.dev, r.Model)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	found, err := e.LogLikelihoods(ctx, list, nil)
	if err != nil {
		return nil, err
	}
	for k, i := range of {
		scores[i].LogProb += found[k].LogProb
	}
	for i := range scores {
		if s := &scores[i]; s.Bytes > 0 {
			s.BitsPerByte = dataset.BitsPerByte(-s.LogProb, uint64(s.Bytes))
		}
	}
	return scores, nil
}
