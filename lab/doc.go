// Package lab holds what is built out of both wings, the data wing and training: preparing data with a tokenizer, the
// demo from source text to samples, the look ahead at what a run will need (foresee.go), studies of many short runs, which are
// comparisons (compare.go), the search for a learning rate (lrfind.go) and the width transfer of muP (coordinates.go,
// transfer.go), searches for the weights of a mixture with small models (mixture.go: doremi.go, regmix.go), and measurements of the
// machine at work (attention.go, dataspeed.go, gemm.go, newtonschulz.go, optim.go, tokenizer.go).
//
// Start with Demo (demo.go). It may import everything below it in the house: train, plan, and the data wing.
package lab
