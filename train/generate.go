package train

import (
	"context"
	"fmt"
	"time"

	"anneal/model"
)

// GenerateOptions says what to generate.
type GenerateOptions struct {
	Prompt    string // may be empty if the tokenizer has an end-of-text token, which documents begin with
	MaxTokens int    // at most so many are made
	model.Sampling
}

// Generated says how generating went.
type Generated struct {
	Prompt, Tokens int           // that were read, end of text included, and made
	First, Rest    time.Duration // until the first token was made, and until all others were
	Memory, Cache  int           // bytes beside the model's; of these, for keys and values
}

// Rate returns how many tokens a second followed the first, 0 if none did.
func (g *Generated) Rate() float64 {
	if g.Tokens < 2 || g.Rest <= 0 {
		return 0
	}
	return float64(g.Tokens-1) / g.Rest.Seconds()
}

// Generate continues the prompt, the way a document of the training data would go on, and hands out text as it becomes
// whole characters. It ends at MaxTokens, at the end of the document, or with ctx.
func (r *Trained) Generate(ctx context.Context, o GenerateOptions, emit func(text string)) (done Generated, err error) {
	if err := o.Validate(); err != nil {
		return done, err
	}
	ids, eot, err := r.begin(o.Prompt)
	if err != nil {
		return done, err
	}
	g, err := model.NewGenerator(r.Model, r.policy, r.dev)
	if err != nil {
		return done, err
	}
	defer g.Close()
	done.Prompt = len(ids)
	done.Memory, done.Cache = g.Bytes()
	stream := r.Tokenizer.NewStreamDecoder()
	defer func() {
		if rest := stream.Flush(); rest != "" {
			emit(rest)
		}
	}()
	for start := time.Now(); done.Tokens < o.MaxTokens; {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		id := g.Next(ids, o.Sampling)
		if err := wait(r.dev); err != nil {
			return done, err
		}
		if id == eot {
			break
		}
		if done.Tokens++; done.Tokens == 1 {
			done.First = time.Since(start)
		}
		done.Rest = time.Since(start) - done.First
		ids = append(ids, id)
		if text := stream.Next(uint32(id)); text != "" {
			emit(text)
		}
	}
	return done, nil
}

// begin returns the tokens of a document that begins with a prompt, and the one that ends it, −1 if there is none.
func (r *Trained) begin(prompt string) (ids []int32, eot int32, err error) {
	eot = -1
	if id, err := r.Tokenizer.EndOfText(); err == nil {
		eot = int32(id)
		ids = append(ids, eot) // documents begin with it
	}
	for _, id := range r.Tokenizer.NewEncoder().Encode(nil, []byte(prompt)) {
		ids = append(ids, int32(id))
	}
	if len(ids) == 0 {
		return nil, eot, fmt.Errorf("the tokenizer of %s has no end-of-text token to begin with\n  try a prompt of at least one character", r.dir)
	}
	return ids, eot, nil
}
