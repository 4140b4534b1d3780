// Package driver binds the part of the CUDA driver API that is used here: one method per C function, with Go's types
// and errors.
//
// Start with Open (driver.go); memory.go, stream.go and module.go follow the chapters of NVIDIA's manual.
package driver
