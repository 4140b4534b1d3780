// Package local connects ranks that are goroutines of one process. Tensors are read where their sender made them, so
// nothing is copied and a receiver needs no memory. Ranks wait on condition variables: one that waits takes no time
// from those that compute.
//
// Since others read a rank's tensors, it may free them only when Sent has returned for each of its transfers, or after
// Abort.
//
// Start with New. Waits and deadlines are in wait.go, the check that all ranks make the same calls in order.go.
package local
