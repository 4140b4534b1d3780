package use

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"anneal/model"
	"anneal/train"
)

// A Text is written by a user and a model in turns. It keeps the keys and values of its tokens from turn to turn.
type Text struct {
	r   *Trained
	g   *model.Generator // nil after Close
	ids []int32
}

// ErrNoText means that there is no token for a model to continue.
var ErrNoText = errors.New("there is no text to continue, and nothing is put before it\n" +
	"  try a prompt of at least one character")

// NewText returns an empty text. Close frees its memory.
func (r *Trained) NewText() (*Text, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	g, err := model.NewGenerator(r.Model, r.Policy, r.dev)
	if err != nil {
		return nil, err
	}
	return &Text{r: r, g: g}, nil
}

// Close frees the memory of the text, but not the model's. A second call does nothing.
func (x *Text) Close() {
	if x.g != nil {
		x.g.Close()
		x.g = nil
	}
}

// Reset makes the text empty.
func (x *Text) Reset() { x.ids = nil }

// Empty reports whether nothing was written since the last Reset.
func (x *Text) Empty() bool { return len(x.ids) == 0 }

// Continue appends the prompt to the text, and then the model's continuation, which it emits as soon as characters are
// complete; emit may be nil. It ends at MaxTokens, where the model ends the text, at a text of Stop, or when ctx ends.
// If the text is longer than the context, the model sees only its end. The texts of special tokens in a prompt stand
// for those tokens. Only the first prompt gets the tokens that are put around a prompt.
func (x *Text) Continue(ctx context.Context, o GenerateOptions, emit func(text string)) (done Generated, err error) {
	if err := x.usable(); err != nil {
		return done, err
	}
	if err := o.check(); err != nil {
		return done, err
	}
	if err := x.read(o.Prompt, o.Bare); err != nil {
		return done, err
	}
	return x.follow(ctx, o, emit)
}

// usable returns ErrClosed after Close of the text or of its model.
func (x *Text) usable() error {
	if x.g == nil {
		return ErrClosed
	}
	return x.r.usable()
}

// follow appends the model's continuation, as Continue does after the prompt.
func (x *Text) follow(ctx context.Context, o GenerateOptions, emit func(text string)) (done Generated, err error) {
	n := len(x.ids)
	done.PromptIDs = x.ids[:n:n]
	done.Memory, done.Cache = x.g.Bytes()
	var shown strings.Builder
	show := func(text string) {
		if shown.WriteString(text); emit != nil {
			emit(text)
		}
	}
	stream, more := x.r.NewStream(o.Stop, show), true
	defer func() {
		done.IDs = x.ids[n:len(x.ids):len(x.ids)]
		done.Stopped = stream.End() // which emits the rest
		if done.Text = shown.String(); done.Stopped != "" {
			x.cut(n, done.Text)
		}
	}()
	o.Sampling.Prompt = n
	for start := time.Now(); len(x.ids)-n < o.MaxTokens && more; {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		most := n + o.MaxTokens - len(x.ids)
		if o.OneByOne || !x.r.guesses() {
			most = 1
		}
		ids := x.g.Draw(x.ids, o.Sampling, most)
		if err := train.Wait(x.r.dev); err != nil {
			return done, err
		}
		done.Passes++
		if i := slices.IndexFunc(ids, x.r.ends); i >= 0 {
			ids, done.Ended, more = ids[:i], true, false
		}
		if done.Passes == 1 {
			done.First, done.early = time.Since(start), len(ids)
		}
		done.Rest = time.Since(start) - done.First
		for _, id := range ids {
			x.ids = append(x.ids, id)
			if !stream.Next(id) {
				more, done.Ended = false, false // tokens made after it are not part of the text
				break
			}
		}
	}
	return done, nil
}

// cut replaces the tokens after the first n by the part that was shown. The stop text was not shown, so the next turn
// must not follow it.
func (x *Text) cut(n int, shown string) {
	decoder := x.r.Tokenizer.NewStreamDecoder()
	keep, kept, end := n, 0, 0
	for i, id := range x.ids[n:] {
		if end += len(decoder.Next(uint32(id))); end > len(shown) {
			break
		}
		if end > kept { // a token without text may begin a character that was not shown
			keep, kept = n+i+1, end
		}
	}
	x.ids = x.ids[:keep:keep] // the others are those of Generated
	for _, id := range x.r.Tokenizer.NewEncoder().Encode(nil, []byte(shown[kept:])) {
		x.ids = append(x.ids, int32(id))
	}
}

// read appends a prompt. Unless it is bare, the first prompt gets the tokens that are put around a prompt.
func (x *Text) read(prompt string, bare bool) error {
	ids, err := x.r.Encode(prompt, bare || !x.Empty())
	if errors.Is(err, ErrNoText) && !x.Empty() {
		return nil
	}
	x.ids = append(x.ids, ids...)
	return err
}

// Encode returns the tokens of a prompt and, unless it is bare, those that are put around it. The texts of special
// tokens stand for those tokens. If there is no token, the error is ErrNoText.
func (r *Trained) Encode(prompt string, bare bool) ([]int32, error) {
	ids := r.Tokenizer.EncodeSpecial([]byte(prompt))
	if !bare {
		before, after := r.Tokenizer.Around()
		ids = slices.Concat(before, ids, after)
	}
	if len(ids) == 0 {
		return nil, ErrNoText
	}
	list := make([]int32, len(ids))
	for i, id := range ids {
		list[i] = int32(id)
	}
	return list, nil
}

// ends reports whether a token ends a text. An imported model may have several.
func (r *Trained) ends(id int32) bool { return slices.Contains(r.SpecialTokens().EOS, int(id)) }

// end returns the token that ends a text, −1 if there is none.
func (r *Trained) end() int32 {
	if id, err := r.Tokenizer.EndOfText(); err == nil {
		return int32(id)
	}
	return -1
}
