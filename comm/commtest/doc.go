// Package commtest tests transports, and programs that use them.
//
// Every transport passes the same suite: Run for groups whose ranks are goroutines of one process, Program for one rank
// of a group of processes. Beside it are groups that make life hard: Strict, whose ranks wait for each other where a
// transport may; Kill, which loses a rank; Network, which delays what is sent, in real time or by a clock of its own.
//
// Start with Program. The package imports comm and tensor.
package commtest
