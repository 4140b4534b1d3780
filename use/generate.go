package use

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"anneal/model"
)

// GenerateOptions configures a generation.
type GenerateOptions struct {
	Prompt    string   // may be empty if a token is put before it, such as the end-of-text token
	Bare      bool     // do not put the tokens of [Trained.Around] around the prompt
	MaxTokens int      // the most tokens to generate
	Stop      []string // the generated text ends before the first occurrence of one of these
	OneByOne  bool     // do not guess tokens (model.Guesser); this only takes longer
	model.Sampling
}

// guessedFrom is the smallest number of parameters with which tokens are guessed ahead. The weights of a smaller model
// fit in caches, so a pass over four tokens takes longer than one over a single token.
const guessedFrom = 16_000_000

// guesses reports whether tokens are guessed ahead.
func (r *Trained) guesses() bool { return r.Model.Count() >= guessedFrom }

// check returns an error that names an invalid option.
func (o *GenerateOptions) check() error {
	if o.MaxTokens < 0 {
		return fmt.Errorf("max tokens: %d is negative\n  try 0 or more", o.MaxTokens)
	}
	if slices.Contains(o.Stop, "") {
		return errors.New("stop: an empty text is everywhere\n  try a text of at least one character")
	}
	return o.Validate()
}

// Generated describes the result of a generation.
type Generated struct {
	Text           string        // that was generated, without a text of Stop
	PromptIDs, IDs []int32       // tokens read, including those around the prompt; and tokens generated
	First, Rest    time.Duration // time to the first token, and from there to the last
	Passes         int           // passes that made the tokens: fewer than tokens if some were guessed
	Memory, Cache  int           // bytes besides the model's; part of these for keys and values
	Ended          bool          // the model ended the text
	Stopped        string        // the text of Stop that ended it; "" if none did

	early int // tokens made in the same pass as the first
}

// Rate returns the tokens per second after the first token; 0 if there were none.
func (g *Generated) Rate() float64 {
	if len(g.IDs) <= g.early || g.Rest <= 0 {
		return 0
	}
	return float64(len(g.IDs)-g.early) / g.Rest.Seconds()
}

// Generate continues the prompt as a document of the training data would continue, and emits text as soon as
// characters are complete; emit may be nil. It ends at MaxTokens, at the end of the document, or when ctx ends.
func (r *Trained) Generate(ctx context.Context, o GenerateOptions, emit func(text string)) (Generated, error) {
	text, err := r.NewText()
	if err != nil {
		return Generated{}, err
	}
	defer text.Close()
	return text.Continue(ctx, o, emit)
}
