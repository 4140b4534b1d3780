package use

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"anneal/device"
	"anneal/model"
	"anneal/train"
)

// A Continuation is what a model wrote after a prompt.
type Continuation struct {
	Text   string
	Tokens int
	Ended  bool // the model ended the text, before MaxTokens

	Stopped string // the text of Stop that ended it; "" if none did
}

// manyMemory is how many bytes GenerateMany takes for several generators; a single one may take more.
const manyMemory = 1 << 30

// GenerateMany continues each of the prompts as Generate does, prompt i with the seed o.Seed + i. o.Prompt is ignored.
// On the CPU it continues as many prompts at a time as there are threads, each on one of them: for small models that is
// faster than all threads on one prompt, and the texts are the same. It calls progress with the number of prompts that
// are done, from several goroutines; progress may be nil.
func (r *Trained) GenerateMany(ctx context.Context, prompts []string, o GenerateOptions,
	progress func(done int)) ([]Continuation, error) {
	list := make([]Continuation, len(prompts))
	err := r.eachPrompt(ctx, len(prompts), progress, func(ctx context.Context, w *writer, i int) (err error) {
		list[i], err = w.write(ctx, prompts[i], uint64(i), o)
		return err
	})
	return list, err
}

// eachPrompt has writers write n texts, several at a time where that is faster.
func (r *Trained) eachPrompt(ctx context.Context, n int, progress func(done int),
	write func(ctx context.Context, w *writer, i int) error) error {
	writers, err := r.writers(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	var next, done atomic.Int64
	for _, w := range writers {
		wait.Go(func() {
			for i := next.Add(1) - 1; int(i) < n && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := write(ctx, w, int(i)); err != nil {
					cancel(fmt.Errorf("prompt %d: %w", i+1, err))
					return
				}
				if n := done.Add(1); progress != nil {
					progress(int(n))
				}
			}
		})
	}
	wait.Wait()
	for _, w := range writers {
		w.close()
	}
	return context.Cause(ctx)
}

// A writer continues one prompt at a time, on a device of its own or on the model's.
type writer struct {
	text *Text
	dev  device.Device // nil: the model's
}

// writers returns as many writers as can work on n prompts at a time.
func (r *Trained) writers(n int) ([]*writer, error) {
	g, err := model.NewGenerator(r.Model, r.Policy, r.dev)
	if err != nil {
		return nil, err
	}
	first := &writer{text: &Text{r: r, g: g}}
	size, _ := g.Bytes()
	count := min(n, r.dev.Threads(), manyMemory/max(size, 1))
	if count < 2 || r.Model.Params()[0].Value.Apart() {
		return []*writer{first}, nil
	}
	first.close()
	var list []*writer
	for range count {
		w, err := r.writer()
		if err != nil {
			for _, w := range list {
				w.close()
			}
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// writer returns a writer with one thread of the CPU.
func (r *Trained) writer() (*writer, error) {
	dev, err := train.OpenDevice(r.Config, "cpu", 1)
	if err != nil {
		return nil, err
	}
	g, err := model.NewGenerator(r.Model, r.Policy, dev)
	if err != nil {
		dev.Close()
		return nil, err
	}
	return &writer{text: &Text{r: r, g: g}, dev: dev}, nil
}

func (w *writer) close() {
	w.text.Close()
	if w.dev != nil {
		w.dev.Close()
	}
}

// write continues prompt i.
func (w *writer) write(ctx context.Context, prompt string, i uint64, o GenerateOptions) (Continuation, error) {
	w.text.Reset()
	o.Prompt, o.Seed = prompt, o.Seed+i
	var text strings.Builder
	done, err := w.text.Continue(ctx, o, func(piece string) { text.WriteString(piece) })
	return Continuation{Text: text.String(), Tokens: len(done.IDs), Ended: done.Ended, Stopped: done.Stopped}, err
}
