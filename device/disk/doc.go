// Package disk keeps tensors in a file instead of memory. Memory implements device.Memory: its tensors are not
// addressable by the host, which reads and writes them by calls, at any time, and computes on copies. Package train
// keeps optimizer state and inputs of recomputed segments there (memory.offload).
//
// Start with Memory (disk.go). The package imports device and tensor.
package disk
