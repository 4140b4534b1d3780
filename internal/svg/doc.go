// Package svg writes pictures as SVG: rectangles, paths and text at coordinates in pixels, x to the right and y down.
// The same calls produce the same bytes.
//
// Start with Picture (svg.go). The packages chart and attention draw with it.
package svg
