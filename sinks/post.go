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
		return fmt.Errorf("it answers %s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
