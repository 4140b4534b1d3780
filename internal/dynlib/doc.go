// Package dynlib opens shared libraries and calls their C functions, without cgo. Its callers know where to look.
//
// Start with Open (dynlib.go).
package dynlib
