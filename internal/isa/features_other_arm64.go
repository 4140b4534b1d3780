//go:build !linux && !darwin && !windows

package isa

// hasBF16 reports false: on other systems no query is implemented.
func hasBF16() bool { return false }

// matrixBytes returns 0, for the same reason.
func matrixBytes() int { return 0 }
