// Package curate filters and cleans documents for training.
//
// A pipeline is a list of stages, written in YAML. Each stage looks at one document at a time: it may change the text,
// adds measurements to the document's signals, and decides whether the document stays. Most stages are a Filter:
// measurements compared with bounds, with the published thresholds as defaults. Each rule set is one file, which
// begins with its source.
//
// Rules share one pass over the tokens of a text (words.go), one over its lines (lines.go) and one over its repeated
// n-grams (grams.go); after a stage that changes the text, these passes are repeated.
//
// Run applies a pipeline to files, one split at a time for each worker of each task. A stage that compares all
// documents divides the pipeline into passes (pass.go); between two passes package dedup decides which documents are
// dropped (compare.go). Journals record finished work with hashes of its input; each task appends to its own journal
// and reads all of them (journal.go, state.go, wait.go). The output is identical whatever the workers, tasks or
// interruptions.
//
// Documents keep their fields. Measurements of stages go to separate files (Pipeline.Signals), so that they cannot
// clash with fields. corpus.Line describes what happens to fields named "text" and "anneal".
package curate
