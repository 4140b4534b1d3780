// Package lab holds studies made of runs:
//
//   - the demo, from source text to samples (demo.go)
//   - many short runs: ablations (ablate.go), the search for a learning rate (lrfind.go), and the width transfer of
//     muP (coordinates.go, transfer.go)
//   - searches for the weights of a mixture with small models (mixture.go, doremi.go, regmix.go)
//   - a loop that learns from accepted answers (improve.go), and the programs that accept them (verify.go)
//   - a ladder of small models for a scaling law (ladder.go, ladderplan.go), and the law's chart (scalingchart.go)
//
// Finish (finish.go) trains a run or what is left of it, Together (together.go) several at a time; package study has
// the studies of the literature, and package claims measures what papers claim.
//
// Start with Ablate (ablate.go). The package may import everything below it.
package lab
