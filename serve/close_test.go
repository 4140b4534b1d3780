package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anneal/use"
)

// answered returns the status of an answer, and fails the test if none comes.
func answered(t *testing.T, answers <-chan *httptest.ResponseRecorder) int {
	t.Helper()
	select {
	case w := <-answers:
		return w.Code
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
		return 0
	}
}

// A server that is embedded by its Handler is closed with requests in hand: all are answered, as are later ones.
func TestCloseAnswersEveryRequest(t *testing.T) {
	s := newServer(t, Options{Sequences: 1})
	const n = 4
	answers := make(chan *httptest.ResponseRecorder, n)
	for range n {
		go func() {
			answers <- send(s, "POST", "/v1/completions", `{"prompt": "the", "max_tokens": 60, "n": 100, "ignore_eos": true}`)
		}()
	}
	for _, waiting := s.loop.counts(); waiting < n; _, waiting = s.loop.counts() {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	for range n {
		if code := answered(t, answers); code != http.StatusServiceUnavailable {
			t.Errorf("a request in hand: status %d", code)
		}
	}
	go func() { answers <- send(s, "POST", "/v1/completions", `{"prompt": "the"}`) }()
	if code := answered(t, answers); code != http.StatusServiceUnavailable {
		t.Errorf("a later request: status %d", code)
	}
	if w := send(s, "GET", "/health", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("health: status %d", w.Code)
	}
}

// A request in hand when the model's device fails is answered with the failure.
func TestADeviceThatFailsEndsTheRequestsInHand(t *testing.T) {
	l := &loop{ended: make(chan struct{}), err: errors.New("the device has failed")}
	close(l.ended)
	c := &completion{news: make(chan struct{}), left: 1}
	_, err := c.wait(t.Context(), l)
	if e := unanswered(err); e.status != http.StatusInternalServerError || !strings.Contains(e.message, "has failed") {
		t.Errorf("%d, %s", e.status, e.message)
	}
	if err := l.add([]*use.Sequence{{}}); err != l.err || len(l.waiting) > 0 {
		t.Errorf("a later request: %v, %d wait", err, len(l.waiting))
	}
	l.drop([]*use.Sequence{{}})
	health := httptest.NewRecorder()
	(&Server{loop: l}).health(health, nil)
	if len(l.dropped) > 0 || health.Code != http.StatusServiceUnavailable {
		t.Errorf("%d sequences are kept, and the server's health is %d", len(l.dropped), health.Code)
	}
}

// Without a name the model has that of the run's directory.
func TestAModelIsNamedAfterItsRun(t *testing.T) {
	r, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if want := filepath.Base(r.Path()); s.o.Model != want {
		t.Errorf("%q, want %q", s.o.Model, want)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	r, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, Options{}); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("without a model: %v", err)
	}
	for _, o := range []Options{{Sequences: -1}, {Requests: -1}, {Timeout: -1}, {Drain: -1}} {
		if s, err := New(r, o); err == nil || !strings.Contains(err.Error(), "try 0 for the default") {
			t.Errorf("%+v: %v", o, err)
			s.Close()
		}
	}
}

// A model that was closed before its server answers no request, and does not end the process.
func TestAClosedModelFailsItsRequests(t *testing.T) {
	if _, err := trained(); err != nil {
		t.Fatal(err)
	}
	r, err := use.Open(filepath.Join(directory, "run"), 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r.Close()
	w := send(s, "POST", "/v1/completions", `{"prompt": "the", "max_tokens": 2}`)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "closed") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}
