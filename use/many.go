package use

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/model"
)

// A Continuation is the text that a model wrote after a prompt.
type Continuation struct {
	Text   string
	Tokens int
	Ended  bool // the model ended the text, before MaxTokens
	Done   bool // the text is complete

	Stopped string // the text of Stop that ended it; "" if none did
}

// manySequences is how many prompts GenerateMany continues at a time, unless their keys and values take more than
// manyMemory bytes.
const (
	manySequences = 16
	manyMemory    = 1 << 30
)

// GenerateMany continues each of the prompts as Generate does, prompt i with the seed o.Seed + i. o.Prompt is ignored.
// It continues several of them in one pass over the weights; the texts are the same as from Generate. It calls
// progress with the number of finished prompts; progress may be nil. If ctx ends or the device fails, it returns the
// continuations beside the error; some may be Done.
func (r *Trained) GenerateMany(ctx context.Context, prompts []string, o GenerateOptions,
	progress func(done int)) ([]Continuation, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	list := make([]opening, len(prompts))
	for i, prompt := range prompts {
		ids, err := r.Encode(prompt, o.Bare)
		if err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i+1, err)
		}
		list[i] = opening{ids, o}
		list[i].o.Seed += uint64(i)
	}
	return r.continueAll(ctx, list, progress)
}

// An opening is the tokens of a prompt, and how they are continued.
type opening struct {
	ids []int32
	o   GenerateOptions
}

// continueAll continues each of the openings, several at a time in shared passes if the model allows it.
func (r *Trained) continueAll(ctx context.Context, list []opening, progress func(done int)) ([]Continuation, error) {
	if progress == nil {
		progress = func(int) {}
	}
	s, err := r.NewScheduler(r.together(len(list)))
	if errors.Is(err, model.ErrNoCache) {
		return r.oneByOne(ctx, list, progress)
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	made := make([]Continuation, len(list))
	next, done := 0, 0
	for done < len(list) {
		for ; next < len(list) && s.Free() > 0; next++ {
			err := s.Add(r.sequence(list[next], &made[next], func() {
				done++
				progress(done)
			}))
			if err != nil {
				return nil, fmt.Errorf("prompt %d: %w", next+1, err)
			}
		}
		if err := ctx.Err(); err != nil {
			return made, context.Cause(ctx)
		}
		if _, err := s.Step(); err != nil {
			return made, err
		}
	}
	return made, nil
}

// together returns how many of n prompts to continue at a time.
func (r *Trained) together(n int) int {
	one := model.CacheBytes(r.Model.Config, r.Policy)
	return max(min(n, manySequences, manyMemory/max(one, 1)), 1)
}

// sequence returns an opening for a Scheduler. The continuation is written to c, and done is called at the end.
func (r *Trained) sequence(x opening, c *Continuation, done func()) *Sequence {
	var text strings.Builder
	stream := r.NewStream(x.o.Stop, func(piece string) { text.WriteString(piece) })
	emit := func(t Token) bool {
		if c.Ended = t.End; t.End {
			return false
		}
		c.Tokens++
		return stream.Next(t.ID)
	}
	end := func() {
		c.Stopped, c.Text, c.Done = stream.End(), text.String(), true
		done()
	}
	return &Sequence{
		IDs: slices.Clip(x.ids), MaxTokens: x.o.MaxTokens, Sampling: x.o.Sampling, OneByOne: x.o.OneByOne,
		Emit: emit, Done: end,
	}
}

// oneByOne is continueAll for a model in which several sequences cannot share a pass.
func (r *Trained) oneByOne(ctx context.Context, list []opening, progress func(done int)) ([]Continuation, error) {
	text, err := r.NewText()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	made := make([]Continuation, len(list))
	for i, x := range list {
		text.ids = slices.Clip(x.ids)
		var b strings.Builder
		done, err := text.follow(ctx, x.o, func(piece string) { b.WriteString(piece) })
		if err != nil {
			return made, fmt.Errorf("prompt %d: %w", i+1, err)
		}
		made[i] = Continuation{
			Text: b.String(), Tokens: len(done.IDs), Ended: done.Ended, Done: true, Stopped: done.Stopped,
		}
		progress(i + 1)
	}
	return made, nil
}
