package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"anneal/internal/webguard/guardtest"
)

// deadlines notes the deadline for reading that a handler sets.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (w *deadlines) SetReadDeadline(t time.Time) error {
	w.read = t
	return nil
}

// A client that promises a body and sends none does not keep its connection, whatever the answer is.
func TestABodyThatNobodyReadsHasADeadline(t *testing.T) {
	s := newServer(t, Options{Key: "secret"})
	for path, status := range map[string]int{"/health": 200, "/v1/models": 401, "/nothing": 401} {
		r := httptest.NewRequest("GET", path, strings.NewReader("ten bytes."))
		r.Host = "localhost"
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s.Handler().ServeHTTP(w, r)
		if w.Code != status || w.read.IsZero() || time.Until(w.read) > bodyTime {
			t.Errorf("%s: status %d, reads until %v", path, w.Code, w.read)
		}
	}
}

// Nobody gets the server to keep more log-probabilities than it can.
func TestLogprobsAreLimited(t *testing.T) {
	q := completionRequest{MaxTokens: whole{new(1 << 14)}, N: whole{new(64)}, Logprobs: whole{new(0)}}
	prompts := []prompt{{ids: []int32{1}}}
	if e := q.checkLogprobs(prompts); e != nil {
		t.Error(e)
	}
	q.Echo = true
	if e := q.checkLogprobs(prompts); e == nil || e.param != "logprobs" {
		t.Errorf("%v", e)
	}
}

// Texts are tokenized by few at a time.
func TestTokenizingIsLimited(t *testing.T) {
	s := newServer(t, Options{})
	for range maxTexts {
		s.texts <- struct{}{}
	}
	for path, body := range map[string]string{"/tokenize": `{"prompt":"a"}`, "/detokenize": `{"tokens":[5]}`} {
		if w := send(s, "POST", path, body); w.Code != http.StatusTooManyRequests {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
	<-s.texts
	if w := send(s, "POST", "/tokenize", `{"prompt":"a"}`); w.Code != http.StatusOK {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// With top_p = 0 the least set of tokens is the most likely one.
func TestTopPOfZeroIsGreedy(t *testing.T) {
	s := newServer(t, Options{})
	got := complete(t, s, `{"prompt":"the","top_p":0,"seed":3,"max_tokens":20}`)
	want := complete(t, s, `{"prompt":"the","temperature":0,"max_tokens":20}`)
	if got.Choices[0].Text != want.Choices[0].Text {
		t.Errorf("%q, want %q", got.Choices[0].Text, want.Choices[0].Text)
	}
}

// Each token's text is at its offset in the text of the answer, also after bytes that are no text.
func TestOffsetsAreThoseOfTheText(t *testing.T) {
	s := newServer(t, Options{})
	var ids []int32 // é in two bytes, half of another one, a letter, two thirds of a euro, and a letter
	for _, b := range []byte("\xc3\xa9\xc3\xa9\xc3x\xe2\x82=") {
		ids = append(ids, byteToken(t, s, b))
	}
	prompt, _ := json.Marshal(ids)
	a := complete(t, s, fmt.Sprintf(`{"prompt":%s,"echo":true,"logprobs":0,"max_tokens":8}`, prompt))
	text, l := []rune(a.Choices[0].Text), a.Choices[0].Logprobs
	if got := fmt.Sprint(l.Offset[:10]); got != "[0 0 1 1 2 3 4 4 5 6]" {
		t.Errorf("offsets %s of %q", got, string(text))
	}
	for i, word := range l.Tokens {
		if strings.HasPrefix(word, "bytes:") {
			continue
		}
		if end := l.Offset[i] + utf8.RuneCountInString(word); end > len(text) || string(text[l.Offset[i]:end]) != word {
			t.Errorf("token %d %q is not at %d of %q", i, word, l.Offset[i], string(text))
		}
	}
}

// byteToken returns the token of one byte.
func byteToken(t *testing.T, s *Server, b byte) int32 {
	for id := range s.r.Tokenizer.VocabSize() {
		if string(s.r.Tokenizer.Token(uint32(id))) == string([]byte{b}) {
			return int32(id)
		}
	}
	t.Fatalf("no token has the byte %x", b)
	return 0
}

// A client that went away is not counted as one that the server was too slow for.
func TestAClientThatLeftHasAStatusOfItsOwn(t *testing.T) {
	s := newServer(t, Options{})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/completions",
		strings.NewReader(`{"prompt":"a","max_tokens":60,"n":100,"ignore_eos":true}`))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != statusGone {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	// Its connection may fail before its context ends.
	r = httptest.NewRequest("POST", "/v1/completions", strings.NewReader(`{"prompt":"a","stream":true}`))
	r.Host = "localhost"
	s.Handler().ServeHTTP(brokenPipe{httptest.NewRecorder()}, r)
	const left = `anneal_serve_requests_total{code="499",endpoint="POST /v1/completions"} 2`
	if w := send(s, "GET", "/metrics", ""); !strings.Contains(w.Body.String(), left) {
		t.Errorf("the metrics lack %q:\n%s", left, w.Body)
	}
}

// A brokenPipe takes the head of an answer, and nothing after it.
type brokenPipe struct{ *httptest.ResponseRecorder }

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A device that fails while the last requests are answered is an error of the server.
func TestAFailureAtTheEndIsNotLost(t *testing.T) {
	s := newServer(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The answer to Expect says that the request is in hand; its body does not come.
	fmt.Fprint(c, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	end()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	failure := errors.New("the device has failed")
	s.loop.broken <- failure
	if err := <-served; err != failure {
		t.Errorf("%v", err)
	}
}

// A request's line and headers take 16 KiB at most.
func TestHeadersAreLimited(t *testing.T) {
	at := "http://" + listening(t) + "/health"
	for size, status := range map[int]int{15 << 10: 200, 16<<10 + 1: 431} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("a", size))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("a header of %d bytes: status %d, want %d", size, answer.StatusCode, status)
		}
	}
}

// Clients that never finish a request keep nobody else out for long.
func TestSlowClientsAreHungUpOn(t *testing.T) {
	guardtest.Outlasts(t, listening(t), "/health", maxConnections, headerTime+10*time.Second)
}

// A flood of connections keeps nobody out, and takes no more than the connections that there may be.
func TestFloodsAreBounded(t *testing.T) {
	guardtest.Survives(t, listening(t), "/health", maxConnections)
}

// listening is the address of a server, which serves until the test ends.
func listening(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	s := newServer(t, Options{})
	go func() { done <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
