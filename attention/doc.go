// Package attention holds attention patterns as data: which earlier tokens a token looks at, by layer and head. One pattern is
// one file: full, window, longformer, bigbird, strided, fixed, longnet, linear.
//
// A Pattern is a few numbers, written as text such as window:256 ([Parse]). [Compile] makes of it a device.Layout, lists of key
// ranges for blocks of queries, whose size follows the length of a row and never its square; the device's one tiled
// kernel runs every layout; linear attention has kernels of its own. Measure (count.go) says how much a layout looks at, and a
// Panel (drawing.go) shows it in a terminal or as SVG.
//
// Start with pattern.go. The package imports device, and tensor for random numbers.
package attention
