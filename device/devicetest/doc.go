// Package devicetest provides a device that is as separate from the host as possible, to test code that uses devices.
// It has its own memory, delays calls as long as allowed, and only accepts tensors in its own memory. It computes with
// the kernels of the CPU. A correct program therefore gets the same bits as on the CPU; a wrong one, such as one that
// reads a loss before it waits, gets other bits or panics.
package devicetest
