// Package devicetest provides a device that is as separate from the host as possible, to test everything that uses
// devices: its memory is apart, it delays calls as long as allowed, and it only accepts tensors in its own memory. It
// computes with the kernels of the CPU. A correct program therefore gets the same bits as on the CPU; a wrong one,
// such as one that reads a loss before it waits, gets other bits or panics.
package devicetest
