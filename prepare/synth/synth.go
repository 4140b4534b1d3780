package synth

import (
	"context"
	"iter"

	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
)

// A Text holds the documents of a synthetic text.
type Text struct {
	Train, Val []string // documents to train on, and held-out ones

	// PromptEnd ends the prompt of each document, which a model reads but is not trained to write; "" if it is trained
	// on all of them.
	PromptEnd string
}

// Build makes a data set of t in dir, with a vocabulary of 257: a token for each byte and one that ends a text.
func (t Text) Build(ctx context.Context, dir string, replace bool) (dataset.Manifest, error) {
	tok, err := tokenizer.Train(ctx, tokenizer.TrainOptions{VocabSize: bytesVocab, Threads: 1}, documents(nil))
	if err != nil {
		return dataset.Manifest{}, err
	}
	o := dataset.BuildOptions{
		Dir: dir, Replace: replace, Tokenizer: prepare.DatasetTokenizer(tok, ""), TokenizerFile: tok,
		TokenizerConfig: tok.ConfigJSON(), PromptEnd: t.PromptEnd,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if len(t.Val) > 0 {
		o.HeldOut = documents(t.Val)
	}
	return dataset.Build(ctx, o, documents(t.Train))
}

const bytesVocab = 257

// documents yields texts as Build takes them.
func documents(list []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, text := range list {
			if !yield([]byte(text), nil) {
				return
			}
		}
	}
}
