package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client is the HTTP client of sinks. It has a timeout, and it does not follow redirects, as a POST would become a
// GET.
var client = &http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// An answerError is an answer that refuses.
type answerError struct {
	code         int
	status, text string
}

func (e *answerError) Error() string { return fmt.Sprintf("it answers %s: %s", e.status, e.text) }

// final reports whether a server would refuse the same message again, however often it is sent.
func final(err error) bool {
	var e *answerError
	return errors.As(err, &e) && (e.code == http.StatusBadRequest || e.code == http.StatusRequestEntityTooLarge ||
		e.code == http.StatusUnprocessableEntity)
}

// post sends JSON. The error does not hold the URL, which may hold a secret.
func post(ctx context.Context, to string, body []byte, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL cannot be used") // Validate has looked at it
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
	if answer.StatusCode >= 300 {
		return &answerError{answer.StatusCode, answer.Status, strings.TrimSpace(string(text))}
	}
	return nil
}
