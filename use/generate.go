package use

import (
	"context"
	"errors"
	"slices"
	"time"

	"anneal/model"
)

// GenerateOptions says what to generate.
type GenerateOptions struct {
	Prompt    string   // may be empty if something is put before it, such as the end-of-text token
	Bare      bool     // put nothing around the prompt, where [Trained.Around] says what is put there
	MaxTokens int      // at most so many are made
	Stop      []string // texts at whose first occurrence what is made ends, without them
	OneByOne  bool     // no token is guessed ahead (model.Guesser), which only takes longer
	model.Sampling
}

// guessedFrom is the number of parameters from which on tokens are guessed ahead. The weights of a smaller model fit in
// caches: a pass over four tokens then takes longer than one over one.
const guessedFrom = 16_000_000

// guesses reports whether tokens are guessed ahead.
func (r *Trained) guesses() bool { return r.Model.Count() >= guessedFrom }

// check returns an error that names an option that cannot be.
func (o *GenerateOptions) check() error {
	if slices.Contains(o.Stop, "") {
		return errors.New("stop: an empty text is everywhere\n  try a text of at least one character")
	}
	return o.Validate()
}

// Generated says how generating went.
type Generated struct {
	PromptIDs, IDs []int32       // tokens that were read, with those put around the prompt, and made
	First, Rest    time.Duration // until the first token was made, and until all others were
	Passes         int           // in which they were made: fewer than tokens, where some were guessed
	Memory, Cache  int           // bytes beside the model's; of these, for keys and values
	Ended          bool          // the model ended the text
	Stopped        string        // the text of Stop that ended it; "" if none did

	early int // tokens that were made with the first
}

// Rate returns how many tokens a second followed the first, 0 if none did.
func (g *Generated) Rate() float64 {
	if len(g.IDs) <= g.early || g.Rest <= 0 {
		return 0
	}
	return float64(len(g.IDs)-g.early) / g.Rest.Seconds()
}

// Generate continues the prompt, the way a document of the training data would go on, and hands out text as it becomes
// whole characters. It ends at MaxTokens, at the end of the document, or with ctx.
func (r *Trained) Generate(ctx context.Context, o GenerateOptions, emit func(text string)) (Generated, error) {
	text, err := r.NewText()
	if err != nil {
		return Generated{}, err
	}
	defer text.Close()
	return text.Continue(ctx, o, emit)
}
