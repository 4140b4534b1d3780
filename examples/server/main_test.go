package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "anneal/internal/torture"
	"anneal/run"
	"anneal/train/traintest"
	"anneal/use"
)

// The server generates and scores with a model of a few steps, and refuses texts that are too long.
func TestTheServerWritesAndScores(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, err := run.Run(context.Background(), run.Options{Config: traintest.Config(traintest.Data(t)), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	trained, err := use.Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	server := httptest.NewServer(handler(trained))
	defer server.Close()
	post := func(path, text string) (int, []byte) {
		answer, err := http.Post(server.URL+path, "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, body
	}
	if code, text := post("/generate", "the sum of "); code != http.StatusOK || len(text) == 0 {
		t.Errorf("status %d, %q", code, text)
	}
	var s use.Score
	code, text := post("/score", "the sum of 3 and 4 is 7\n")
	if err := json.Unmarshal(text, &s); err != nil || code != http.StatusOK || s.Tokens == 0 || s.BitsPerByte <= 0 {
		t.Errorf("status %d, %q: %+v, %v", code, text, s, err)
	}
	leaving(t, server.Config.Handler)
	if code, _ := post("/score", strings.Repeat("x", 65<<10)); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long text: status %d", code)
	}
}

// leaving checks that a client that disconnects while the model answers another one does not wait for its turn.
func leaving(t *testing.T, handler http.Handler) {
	held, release := make(chan bool), make(chan bool)
	first := make(chan bool)
	go func() {
		w := &holding{ResponseRecorder: httptest.NewRecorder(), held: held, release: release}
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/score", strings.NewReader("the sum")))
		close(first)
	}()
	<-held // the model is answering
	ctx, leave := context.WithCancel(context.Background())
	left, w := make(chan bool), httptest.NewRecorder()
	go func() {
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/score", strings.NewReader("the sum")))
		close(left)
	}()
	leave()
	select {
	case <-left:
		if w.Body.Len() > 0 {
			t.Errorf("a client that left was answered %q", w.Body)
		}
	case <-time.After(10 * time.Second):
		t.Error("a client that left waits for its turn")
	}
	close(release)
	<-first
}

// holding is a client that takes its answer only when told to.
type holding struct {
	*httptest.ResponseRecorder
	held, release chan bool
}

func (w *holding) Write(text []byte) (int, error) {
	w.held <- true
	<-w.release
	return w.ResponseRecorder.Write(text)
}
