// Package mpi connects ranks that are processes, on one machine or many, by the MPI library of the system. The library
// is loaded when a run starts; binaries have it if they were built with the tag mpi, on Linux. They need no cgo.
// Without the tag, Open returns an error that says how to build such a binary.
//
// All calls of the library are made by one goroutine that stays on its thread (thread.go), which is what every library
// allows. Only messages from one rank to another are used, and none waits inside the library: its own collective
// operations add in an order of their own, and take the processor while they wait.
//
// Start with Open (open.go), then group.go and transfer.go. The libraries differ in their constants (abi.go) and
// in the signal handlers that they leave behind (signals.go). The package imports comm, tensor and internal/dynlib.
package mpi
