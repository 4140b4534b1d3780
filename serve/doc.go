// Package serve is a server of completions in the form of OpenAI's API, for a trained model.
//
// One goroutine owns the model (loop.go). Between two passes it admits waiting sequences and drops those whose client
// has disconnected. It writes the tokens of a pass to each request's memory, so that no client can delay it. A request
// is checked (guard.go), read (request.go), and answered at once or as a stream (completions.go, stream.go), with
// log-probabilities in the API's form (logprobs.go). tokenize.go has the tokenizer's endpoints, errors.go the form of
// errors, metrics.go the metrics for Prometheus.
//
// Each of the model's threads occupies one of Go's processors while it computes. A program that serves must add one
// for its handlers (runtime.GOMAXPROCS), or they wait for up to 10 ms.
//
// Start with server.go. The package may import use and packages below it.
package serve
