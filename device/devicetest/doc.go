// Package devicetest holds a device that is as far from the host as a device can be, for tests of everything that uses one: its memory
// is apart, what it is asked for happens as late as it may, and what it is asked for must lie in its own memory. It computes with
// the kernels of the CPU, so that whatever a program does with it right has the bits of the CPU, and whatever it does wrong, such
// as to read a loss before it waited, has others or panics.
package devicetest
