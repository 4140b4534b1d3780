//go:build !linux

package isa

// tilesGranted reports false: on other systems no request for tiles is implemented.
func tilesGranted() bool { return false }
