// Package dynlib finds and opens the vendor's shared libraries and calls their C functions, without cgo.
//
// Start with Open (dynlib.go), then the places it looks in (search.go).
package dynlib
