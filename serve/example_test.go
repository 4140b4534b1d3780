package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// A server of the caller's own answers completions under /v1/. trained opens a run, as use.Open does.
func ExampleServer_Handler() {
	r, err := trained()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := New(r, Options{Model: "sums"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	mux := http.NewServeMux()
	mux.Handle("/v1/", s.Handler())
	web := httptest.NewServer(mux) // or an http.Server with timeouts
	defer web.Close()              // before the model's server: it waits for requests in hand

	answer, err := http.Post(web.URL+"/v1/completions", "application/json",
		strings.NewReader(`{"model": "sums", "prompt": "the sum of", "max_tokens": 8}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	var text struct{ Model string }
	err = json.NewDecoder(answer.Body).Decode(&text)
	fmt.Println(answer.Status, text.Model, err)
	// Output: 200 OK sums <nil>
}
