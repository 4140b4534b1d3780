// Package prepare brings tokenizer and data set together, and looks at both before and during a run:
//
//   - from text to a tokenizer and a data set (data.go, sample.go), and to and from token files of other systems
//     (tokenfiles.go)
//   - the data of a run, opened: its sources, their order and their held-out text (corpus.go, turns.go)
//   - how well a tokenizer fits a text, and which vocabulary size is best (fit.go, vocabulary.go)
//   - what a data set holds: lengths and packing (inspect.go), scores of documents (score.go), held-out text
//     (heldout.go), mixes (mix.go) and orders (order.go)
//
// Start with BuildData (data.go) and Corpus (corpus.go). The package may import config and the data wing; it knows no
// model.
package prepare
