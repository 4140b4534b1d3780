// Command server answers HTTP with a model that anneal trained, as part of a server of your own.
//
//	go run ./examples/server RUN
//	curl -d 'func main' http://127.0.0.1:8090/generate
//	curl -d 'func main() {}' http://127.0.0.1:8090/score
//
// A module of your own beside the clone needs the line `replace anneal => ../anneal` in its go.mod; `go mod tidy` adds
// the rest.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"time"

	"anneal/model"
	"anneal/use"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: server RUN")
	}
	trained, err := use.Open(os.Args[1], 0)
	if err != nil {
		log.Fatal(err)
	}
	defer trained.Close()
	server := &http.Server{
		Addr: "127.0.0.1:8090", Handler: handler(trained), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) // one more for requests; the model keeps the others busy
	log.Print("listening on http://", server.Addr)
	log.Print(server.ListenAndServe())
}

// handler answers a POST to /generate with the continuation of its text, piece by piece as the model writes it, and a
// POST to /score with the likelihood of its text. The model answers one request at a time. A client that disconnects
// cancels its request, also while it waits.
func handler(trained *use.Trained) http.Handler {
	one := make(chan struct{}, 1) // holds a token while the model answers; a wait for a mutex could not be cancelled
	answer := func(f func(w http.ResponseWriter, r *http.Request, text string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
			if err != nil {
				http.Error(w, "the text is too long", http.StatusRequestEntityTooLarge)
				return
			}
			select {
			case one <- struct{}{}:
				defer func() { <-one }()
			case <-r.Context().Done():
				return
			}
			if err := f(w, r, string(text)); err != nil && !errors.Is(err, r.Context().Err()) {
				log.Print(err)
			}
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /generate", answer(func(w http.ResponseWriter, r *http.Request, prompt string) error {
		out := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := trained.Generate(r.Context(), use.GenerateOptions{
			Prompt: prompt, MaxTokens: 64, Sampling: model.Sampling{Temperature: 0.7, TopP: 0.95, Seed: 1},
		}, func(text string) {
			io.WriteString(w, text)
			out.Flush()
		})
		return err
	}))
	mux.Handle("POST /score", answer(func(w http.ResponseWriter, r *http.Request, text string) error {
		scores, err := trained.Score(r.Context(), text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(scores[0])
	}))
	return mux
}
