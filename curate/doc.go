// Package curate decides which documents are worth training on, and cleans those that are.
//
// A pipeline is a list of stages, written in YAML. Each stage looks at one document at a time: it may change the text, adds
// numbers about it to the document's signals, and says whether the document stays. Most stages are a Filter: numbers held
// against bounds, with the published thresholds as defaults. One rule set is one file, which opens with its source.
//
// Rules share one pass over the tokens of a text (words.go), one over its lines (lines.go) and one over its repeated
// n-grams (grams.go); a stage that changes the text makes those after it look again.
//
// Run applies a pipeline to files, a split at a time on each worker and each task. A stage that compares all documents cuts the
// pipeline into passes (pass.go), between which package dedup decides what goes (compare.go). Journals say what is done and what it
// was made from, by hashes; each task appends to its own and reads all (journal.go, state.go, wait.go). What Run writes depends on the bytes of the input, their
// order and the pipeline alone, never on the number of workers or on where it was stopped before.
package curate
