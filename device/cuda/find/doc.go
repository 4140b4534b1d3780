// Package find finds and opens NVIDIA's shared libraries.
//
// Start with Open (open.go), then Places (places.go).
package find
