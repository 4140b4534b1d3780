// Package serve is a server of completions in the form of OpenAI's API, for a trained model.
//
// One goroutine owns the model (loop.go): between two passes it admits sequences that wait and drops those whose client
// is gone; what a pass makes goes to each request's memory, so that no client can hold it up. A request is checked
// (guard.go), read (request.go), answered at once or as it is made (completions.go, stream.go), and its
// log-probabilities are put into words (logprobs.go). tokenize.go has the tokenizer's endpoints, errors.go the form of
// errors, metrics.go what Prometheus reads.
//
// The model's threads hold a processor of Go's each while they compute. A program that serves gives its handlers one
// more (runtime.GOMAXPROCS), or they wait for up to 10 ms.
//
// Start with server.go. The package may import use and what stands below it.
package serve
