package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"anneal/use"
)

// A completion is a request being answered. The loop writes to its choices, and the handler reads them.
type completion struct {
	id      string
	created int64
	model   string
	start   time.Time

	mu      sync.Mutex
	choices []*choice
	left    int           // choices that are not complete
	news    chan struct{} // holds a token if something was written since the handler last read
	first   time.Duration // until the first token was made; 0 before
}

// A choice is one of the texts of a completion.
type choice struct {
	index  int
	prompt prompt
	seq    *use.Sequence
	stream *use.Stream

	text   string   // text that the handler has not taken yet
	words  *wording // log-probabilities, if requested
	made   int
	ended  bool   // the model ended the text, or it stopped at a stop text of the request
	reason string // why it is complete; "" before
	told   bool   // the stream has reported it
}

// completions answers POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var q completionRequest
	if e := readJSON(w, r, &q); e != nil { // before a place is taken, so that a slow body does not hold one
		fail(w, e)
		return
	}
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
		fail(w, shuttingDown())
		return
	}
	release := take(w, s.requests)
	if release == nil {
		return
	}
	defer release()
	c, e := s.newCompletion(&q)
	if e != nil {
		fail(w, e)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	sequences := make([]*use.Sequence, len(c.choices))
	for i, x := range c.choices {
		sequences[i] = x.seq
	}
	defer s.loop.drop(sequences) // complete or not
	if err := s.loop.add(sequences); err != nil {
		fail(w, unanswered(err))
		return
	}
	if q.Stream {
		s.stream(ctx, w, &q, c)
	} else {
		s.whole(ctx, w, &q, c)
	}
	s.metrics.complete(c)
}

// newCompletion checks a request and makes its choices.
func (s *Server) newCompletion(q *completionRequest) (*completion, *apiError) {
	if e := s.o.knows(cmp.Or(q.Model, s.o.Model)); e != nil {
		return nil, e
	}
	if e := q.check(); e != nil {
		return nil, e
	}
	sampling, e := q.sampling()
	if e != nil {
		return nil, e
	}
	stops, e := q.stops()
	if e != nil {
		return nil, e
	}
	prompts, e := q.prompts(s.r)
	if e != nil {
		return nil, e
	}
	if e := q.checkLogprobs(prompts); e != nil {
		return nil, e
	}
	c := &completion{
		id: "cmpl-" + rand.Text(), created: time.Now().Unix(), model: s.o.Model, start: time.Now(),
		news: make(chan struct{}, 1),
	}
	for _, p := range prompts {
		for range or(q.N.value, 1) {
			x := &choice{index: len(c.choices), prompt: p}
			if q.Echo {
				x.text = p.text
			}
			x.stream = s.r.NewStream(stops, func(text string) { x.text += text })
			if q.Logprobs.value != nil {
				x.words = newWording(s.r, q.Echo, p)
			}
			x.seq = &use.Sequence{
				IDs: slices.Clip(p.ids), MaxTokens: q.maxTokens(), Sampling: sampling,
				IgnoreEnd: q.IgnoreEOS, OneByOne: s.o.OneByOne, Logprobs: q.Logprobs.value, Echo: q.Echo,
				Emit: func(t use.Token) bool { return c.take(x, t) }, Done: func() { c.finish(x) },
			}
			sampling.Seed++ // of the next choice
			c.choices = append(c.choices, x)
		}
	}
	c.left = len(c.choices)
	return c, nil
}

// take adds a token to a choice. The loop calls it.
func (c *completion) take(x *choice, t use.Token) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.tell()
	if x.words != nil && x.words.add(t) {
		return true
	}
	x.made++
	if c.first == 0 {
		c.first = time.Since(c.start)
	}
	if t.End {
		x.ended = true
		return false
	}
	return x.stream.Next(t.ID)
}

// finish records that a choice is complete. The loop calls it.
func (c *completion) finish(x *choice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.tell()
	c.left--
	x.reason = "length"
	if x.stream.End() != "" || x.ended {
		x.reason = "stop"
	}
}

func (c *completion) tell() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// wait waits for something new, and returns whether there may be more after it. The error is that of ctx, or says why
// the loop has ended.
func (c *completion) wait(ctx context.Context, l *loop) (more bool, err error) {
	select {
	case <-c.news:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-l.ended:
		err = l.failure()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return false, nil
	}
	return true, err
}

// whole answers with all choices once they are complete.
func (s *Server) whole(ctx context.Context, w http.ResponseWriter, q *completionRequest, c *completion) {
	for more := true; more; {
		var err error
		if more, err = c.wait(ctx, s.loop); err != nil {
			fail(w, unanswered(err))
			return
		}
	}
	answer := c.object()
	list := make([]any, len(c.choices))
	for i, x := range c.choices {
		list[i] = x.object(x.text, x.words.take(), x.reason)
	}
	answer["choices"], answer["usage"] = list, c.usage()
	reply(w, http.StatusOK, answer)
}

// statusGone is the status that other servers log for a client that has disconnected.
const statusGone = 499

// unanswered is the error of a request that was not answered: it took too long, the client is gone, the server was
// closed, or the model's device has failed.
func unanswered(err error) *apiError {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{http.StatusGatewayTimeout, "server_error", "", "timeout",
			"the request took longer than the server allows"}
	case errors.Is(err, context.Canceled):
		return &apiError{statusGone, "server_error", "", "timeout", "the request was cancelled by the client"}
	case errors.Is(err, errClosed):
		return shuttingDown()
	}
	return &apiError{http.StatusInternalServerError, "server_error", "", "", err.Error()}
}

// object holds the fields at the beginning of all answers.
func (c *completion) object() map[string]any {
	return map[string]any{"id": c.id, "object": "text_completion", "created": c.created, "model": c.model}
}

// object is a choice in an answer.
func (x *choice) object(text string, words any, reason string) map[string]any {
	var finish any
	if reason != "" {
		finish = reason
	}
	return map[string]any{"index": x.index, "text": text, "logprobs": words, "finish_reason": finish}
}

// usage counts tokens; a prompt counts once, however many choices it has.
func (c *completion) usage() map[string]int {
	read, made := 0, 0
	for i, x := range c.choices {
		if i == 0 || &x.prompt.ids[0] != &c.choices[i-1].prompt.ids[0] {
			read += len(x.prompt.ids)
		}
		made += x.made
	}
	return map[string]int{"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}
}
