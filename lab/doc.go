// Package lab combines the data wing and training:
//
//   - the demo from source text to samples (demo.go)
//   - forecasting what a run will need (foresee.go)
//   - studies of many short runs: comparisons (compare.go), the search for a learning rate (lrfind.go), and the width
//     transfer of muP (coordinates.go, transfer.go)
//   - searches for the weights of a mixture with small models (mixture.go, doremi.go, regmix.go)
//   - measurements of the machine (attention.go, benchtokenizer.go, dataspeed.go, gemm.go, newtonschulz.go, optim.go)
//
// Start with Demo (demo.go). The package may import everything below it: train, plan, and the data wing.
package lab
