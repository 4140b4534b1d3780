// Package chart draws line and scatter charts, as SVG and as characters for a terminal. Both show the same axes,
// ticks, bands and marks, and neither needs colour to be read.
//
// Start with Chart (chart.go). The package knows nothing of training and imports only internal/svg; callers (lr-find,
// the width check of muP, reports) pass slices of numbers.
package chart
