// Package driver is the CUDA driver API as far as it is used here: one method per C function, with Go's types and errors.
//
// Start with Open (driver.go); memory.go, stream.go and module.go follow the headings of the vendor's manual.
package driver
