// Package commtest tests transports, and programs that use them.
//
// Every transport passes the same suite: Run for groups whose ranks are goroutines of one process, Program for one
// rank of a group of processes. The package also has difficult groups: in Strict, ranks wait for each other wherever a
// transport may; Kill loses a rank; Network delays messages, in real time or by its own clock.
//
// Start with Program. The package imports comm and tensor.
package commtest
