// Package dynlib finds and opens NVIDIA's shared libraries and calls their C functions, without cgo.
//
// Start with Open (dynlib.go), then the search path (search.go).
package dynlib
