// Package cublaslt binds the part of NVIDIA's matrix product library that is used here.
//
// Start with Open, then Plan and Run (plan.go). Matrices are column-major, as in NVIDIA's manual.
package cublaslt
