// Package local connects ranks that are goroutines of one process. Receivers read tensors in the sender's memory, so
// nothing is copied and receiving needs no memory. Ranks wait on condition variables, so a waiting rank takes no time
// from ranks that compute.
//
// Since other ranks read a rank's tensors, it may free them only when Sent has returned for each of its transfers, or
// after Abort.
//
// Start with New. Waits and deadlines are in wait.go, the check that all ranks make the same calls in order.go.
package local
