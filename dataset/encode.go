package dataset

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/zeebo/xxh3"
)

// document is a tokenised document, to be written to a shard.
type document struct {
	tokens    []uint32 // without EOT
	textBytes int
	hash      uint64 // XXH3 of the text
	prompt    int    // number of leading tokens that are a prompt
}

// work is a run of consecutive documents that one goroutine encodes.
type work struct {
	text     []byte
	textEnds []int

	tokens    []uint32
	tokenEnds []int
	prompts   []int
	hashes    []uint64
	err       error         // of document len(tokenEnds)
	done      chan struct{} // receives once when encoded
}

// workBytes is the approximate amount of text in one piece of work.
const workBytes = 256 << 10

func (w *work) reset() {
	w.text, w.textEnds = w.text[:0], w.textEnds[:0]
	w.tokens, w.tokenEnds, w.hashes, w.err = w.tokens[:0], w.tokenEnds[:0], w.hashes[:0], nil
	w.prompts = w.prompts[:0]
}

// encode tokenises the documents. It encodes the text before and after the end of a prompt separately, so that a
// prompt has the same tokens as on its own.
func (w *work) encode(t Tokenizer, promptEnd string, encode func([]uint32, []byte) []uint32) {
	start := 0
	for _, end := range w.textEnds {
		text := w.text[start:end]
		before, prompt := len(w.tokens), promptBytes(text, promptEnd)
		if prompt > 0 {
			w.tokens = encode(w.tokens, text[:prompt])
		}
		w.prompts = append(w.prompts, len(w.tokens)-before)
		w.tokens = encode(w.tokens, text[prompt:])
		if err := t.holds(w.tokens[before:]); err != nil {
			w.err = fmt.Errorf("the tokenizer produced %w", err)
			return
		}
		w.hashes = append(w.hashes, xxh3.Hash(text))
		w.tokenEnds = append(w.tokenEnds, len(w.tokens))
		start = end
	}
}

// promptBytes returns the length of a text's prompt: up to and including the first occurrence of end.
func promptBytes(text []byte, end string) int {
	if end == "" {
		return 0
	}
	at := bytes.Index(text, []byte(end))
	if at < 0 {
		return 0
	}
	return at + len(end)
}

// document returns document i, which shares its memory with w.
func (w *work) document(i int) document {
	tokens, text := 0, 0
	if i > 0 {
		tokens, text = w.tokenEnds[i-1], w.textEnds[i-1]
	}
	return document{
		tokens: w.tokens[tokens:w.tokenEnds[i]], textBytes: w.textEnds[i] - text, hash: w.hashes[i],
		prompt: w.prompts[i],
	}
}

// encodeAll encodes docs with opt.Threads goroutines and passes them to add in order. At most about 3 · Threads
// pieces of work are in memory.
func encodeAll(ctx context.Context, opt BuildOptions, docs iter.Seq2[[]byte, error], add func(document) error,
	progress func()) error {
	running, stop := context.WithCancel(ctx)
	queue := make(chan *work, opt.Threads) // for the encoders
	order := make(chan *work, 2*opt.Threads)
	free := make(chan *work, 3*opt.Threads+2)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()

	var readErr error
	group.Go(func() {
		readErr = distribute(running, docs, queue, order, free)
		close(queue)
		close(order)
	})
	for range opt.Threads {
		group.Go(func() {
			encode := opt.NewEncoder()
			for w := range queue {
				w.encode(opt.Tokenizer, opt.PromptEnd, encode)
				w.done <- struct{}{}
			}
		})
	}
	count := 0
	for w := range order {
		select {
		case <-w.done:
		case <-running.Done():
			return context.Cause(ctx)
		}
		for i := range w.tokenEnds {
			if err := add(w.document(i)); err != nil {
				return err
			}
		}
		count += len(w.tokenEnds)
		if w.err != nil {
			return fmt.Errorf("document %d: %w", count, w.err)
		}
		progress()
		w.reset()
		free <- w
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return readErr
}

// distribute groups docs into pieces of work and sends each to the encoders and, in order, to the writer.
func distribute(ctx context.Context, docs iter.Seq2[[]byte, error], queue, order chan<- *work,
	free <-chan *work) error {
	var w *work
	send := func() bool {
		select {
		case order <- w:
		case <-ctx.Done():
			return false
		}
		select {
		case queue <- w:
		case <-ctx.Done():
			return false
		}
		w = nil
		return true
	}
	for text, err := range docs {
		if err != nil || ctx.Err() != nil {
			return err
		}
		if w == nil {
			select {
			case w = <-free:
			default:
				w = &work{done: make(chan struct{}, 1)}
			}
		}
		w.text = append(w.text, text...)
		w.textEnds = append(w.textEnds, len(w.text))
		if len(w.text) >= workBytes && !send() {
			return nil
		}
	}
	if w != nil {
		send()
	}
	return nil
}
