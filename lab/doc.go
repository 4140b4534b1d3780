// Package lab holds studies made of runs:
//
//   - the demo, from source text to samples (demo.go)
//   - many short runs: comparisons (compare.go), the search for a learning rate (lrfind.go), and the width transfer of
//     muP (coordinates.go, transfer.go)
//   - searches for the weights of a mixture with small models (mixture.go, doremi.go, regmix.go)
//   - a ladder of small models for a scaling law (ladder.go, ladderplan.go), and the law's chart (scalingchart.go)
//
// Start with Compare (compare.go). The package may import everything below it.
package lab
