package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// stream answers with server-sent events while the choices are generated. It gives up on a client that does not
// receive them for too long; the loop does not wait for it.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, q *completionRequest, c *completion) {
	control := http.NewResponseController(w)
	send := func(v any) bool {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return event(w, control, text)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for more := true; more; {
		var err error
		if more, err = c.wait(ctx, s.loop); err != nil {
			e := unanswered(err)
			send(e.body())
			note(w, e.status)
			return
		}
		for _, part := range c.parts() {
			answer := c.object()
			answer["choices"] = []any{part}
			if q.usage() {
				answer["usage"] = nil
			}
			if !send(answer) {
				return
			}
		}
	}
	if q.usage() {
		answer := c.object()
		answer["choices"], answer["usage"] = []any{}, c.usage()
		if !send(answer) {
			return
		}
	}
	event(w, control, []byte("[DONE]"))
}

// usage reports whether a stream ends with the numbers of tokens.
func (q *completionRequest) usage() bool {
	return q.StreamOptions != nil && q.StreamOptions.IncludeUsage
}

// event writes one event, and returns whether the client received it. A client that did not counts as disconnected.
func event(w http.ResponseWriter, control *http.ResponseController, text []byte) bool {
	control.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := w.Write(append(append([]byte("data: "), text...), "\n\n"...))
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		note(w, statusGone)
	}
	return err == nil
}

// parts takes the new text of each choice.
func (c *completion) parts() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []any
	for _, x := range c.choices {
		words := x.words.take()
		if x.text == "" && words == nil && (x.reason == "" || x.told) {
			continue
		}
		list = append(list, x.object(x.text, words, x.reason))
		x.text, x.told = "", x.reason != ""
	}
	return list
}
