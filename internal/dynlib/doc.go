// Package dynlib opens shared libraries and calls their C functions, without cgo. Callers provide the paths.
//
// Start with Open (dynlib.go).
package dynlib
