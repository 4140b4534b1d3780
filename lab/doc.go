// Package lab holds what is built out of both wings, the data wing and training: preparing data with a tokenizer, the
// demo from source text to samples, the look ahead at what a run will need, and studies of many short runs: comparisons and
// the width transfer of muP (coordinates.go, transfer.go).
//
// Start with Demo (demo.go). It may import everything below it in the house: train, plan, and the data wing.
package lab
