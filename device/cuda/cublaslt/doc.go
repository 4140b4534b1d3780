// Package cublaslt is the vendor's library of matrix products, as far as it is used here.
//
// Start with Open, then Plan and Run (plan.go). Matrices are column-major, as in the vendor's manual.
package cublaslt
