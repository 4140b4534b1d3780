package use

import (
	"context"
	"errors"
	"slices"
	"time"

	"anneal/model"
	"anneal/train"
)

// A Text is written by a person and a model in turns. It keeps the keys and values of its tokens from turn to turn.
type Text struct {
	r   *Trained
	g   *model.Generator
	ids []int32
}

// ErrNoText means that a model is to continue nothing at all.
var ErrNoText = errors.New("there is no text to continue, and nothing is put before it\n" +
	"  try a prompt of at least one character")

// NewText returns an empty text. Close frees its memory.
func (r *Trained) NewText() (*Text, error) {
	g, err := model.NewGenerator(r.Model, r.Policy, r.dev)
	if err != nil {
		return nil, err
	}
	return &Text{r: r, g: g}, nil
}

// Close frees the memory of the text, but not the model's.
func (x *Text) Close() { x.g.Close() }

// Reset makes the text empty.
func (x *Text) Reset() { x.ids = nil }

// Empty reports whether nothing was written since the last Reset.
func (x *Text) Empty() bool { return len(x.ids) == 0 }

// Continue appends the prompt to the text, and then what the model writes, which it hands out as it becomes whole
// characters. It ends at MaxTokens, where the model ends the text, at a text of Stop, or with ctx. The texts of special
// tokens in a prompt stand for those tokens. What is put around a prompt is put around the first one alone.
func (x *Text) Continue(ctx context.Context, o GenerateOptions, emit func(text string)) (done Generated, err error) {
	if err := o.Validate(); err != nil {
		return done, err
	}
	if slices.Contains(o.Stop, "") {
		return done, errors.New("stop: an empty text is everywhere\n  try a text of at least one character")
	}
	if err := x.read(o.Prompt, o.Bare); err != nil {
		return done, err
	}
	return x.follow(ctx, o, emit)
}

// follow appends what the model writes, as Continue does after the prompt.
func (x *Text) follow(ctx context.Context, o GenerateOptions, emit func(text string)) (done Generated, err error) {
	n := len(x.ids)
	done.PromptIDs = x.ids[:n:n]
	done.Memory, done.Cache = x.g.Bytes()
	stream, stop := x.r.Tokenizer.NewStreamDecoder(), stopper{at: o.Stop, emit: emit}
	defer func() {
		done.IDs = x.ids[n:len(x.ids):len(x.ids)]
		if stop.write(stream.Flush()); stop.found == "" {
			stop.flush()
		}
		done.Stopped = stop.found
	}()
	end := x.r.end()
	o.Sampling.Prompt = n
	for start := time.Now(); len(x.ids)-n < o.MaxTokens && stop.found == ""; {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		id := x.g.Next(x.ids, o.Sampling)
		if err := train.Wait(x.r.dev); err != nil {
			return done, err
		}
		if id == end {
			done.Ended = true
			break
		}
		if len(x.ids) == n {
			done.First = time.Since(start)
		}
		done.Rest = time.Since(start) - done.First
		x.ids = append(x.ids, id)
		stop.write(stream.Next(uint32(id)))
	}
	return done, nil
}

// read appends a prompt, the first one between the tokens that are put around it unless it is to be bare.
func (x *Text) read(prompt string, bare bool) error {
	ids := x.r.Tokenizer.EncodeSpecial([]byte(prompt))
	if x.Empty() && !bare {
		before, after := x.r.Tokenizer.Around()
		ids = append(append(before, ids...), after...)
	}
	if x.Empty() && len(ids) == 0 {
		return ErrNoText
	}
	for _, id := range ids {
		x.ids = append(x.ids, int32(id))
	}
	return nil
}

// end is the token that ends a text, −1 if there is none.
func (r *Trained) end() int32 {
	if id, err := r.Tokenizer.EndOfText(); err == nil {
		return int32(id)
	}
	return -1
}
