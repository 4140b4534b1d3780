package dataset

import (
	"context"
	"fmt"
	"iter"

	"github.com/zeebo/xxh3"
)

// Documents yields the tokens of each document of the training split, or of the validation split, in order, without
// EOT. It reuses the slices.
func (d *Dataset) Documents(val bool) iter.Seq2[[]uint32, error] {
	stream := &d.train
	if val {
		stream = &d.val
	}
	return func(yield func([]uint32, error) bool) {
		var buf scratch
		var tokens []uint32
		stopped := false
		err := stream.documents(func(start, end, _ uint64) {
			if stopped {
				return
			}
			n := int(end - start - 1)
			tokens = append(tokens[:0], make([]uint32, n)...)
			err := stream.read(tokens, start+1, &buf)
			stopped = !yield(tokens, err) || err != nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// ImportOptions are the options of Import.
type ImportOptions struct {
	BuildOptions // without NewEncoder, PromptEnd and Threads

	// Decode appends the text of tokens to dst. The text determines a document's split, as in Build, and its bytes
	// are counted.
	Decode func(dst []byte, tokens []uint32) []byte
}

// Import writes a dataset from tokenised documents, as Build does from texts. If val is not nil, it is the validation
// split, and ValFraction is ignored. train and val may reuse the slices that they yield after the next one is
// requested.
func Import(ctx context.Context, opt ImportOptions, train, val iter.Seq2[[]uint32, error]) (Manifest, error) {
	if val != nil {
		opt.ValFraction = 0
	}
	return opt.make("import", func(b *builder) error {
		err := opt.each(ctx, b, train, b.add)
		if err == nil && val != nil {
			err = opt.each(ctx, b, val, b.val.add)
		}
		return err
	})
}

// each passes documents to add.
func (opt *ImportOptions) each(ctx context.Context, b *builder, docs iter.Seq2[[]uint32, error],
	add func(document) error) error {
	var text []byte
	count := 0
	for tokens, err := range docs {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := opt.Tokenizer.holds(tokens); err != nil {
			return fmt.Errorf("document %d: %w", count, err)
		}
		text = opt.Decode(text[:0], tokens)
		if err := add(document{tokens: tokens, textBytes: len(text), hash: xxh3.Hash(text)}); err != nil {
			return err
		}
		if count++; count%1024 == 0 {
			b.progress()
		}
	}
	return nil
}
