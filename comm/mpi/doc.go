// Package mpi connects ranks that are processes, on one machine or many, by the MPI library of the system. The library
// is loaded when a run starts; binaries have it if they were built with the tag mpi, on Linux. They need no cgo.
// Without the tag, Open returns an error that says how to build such a binary.
//
// All calls of the library are made by one goroutine that stays on its thread (thread.go), which is what every library
// allows. Only messages between two ranks are used, and no call waits inside the library. The library's collective
// operations are not used, because they add in an unspecified order and keep the processor busy while they wait.
//
// Start with Open (open.go), then group.go and transfer.go. The libraries differ in their constants (abi.go) and in
// the signal handlers that they install (signals.go). The package imports comm, tensor and internal/dynlib.
package mpi
