// Package attention describes attention patterns as data: which earlier tokens each token sees, by layer and head.
// Each pattern has its own file: full, window, longformer, bigbird, strided, fixed, longnet, linear,
// delta, gla.
//
// A Pattern is a few numbers, written as text such as window:256 ([Parse]). [Compile] turns it into a device.Layout:
// lists of key ranges for blocks of queries, whose size is linear in the length of a row. One tiled kernel of the
// device runs every layout; linear attention has its own kernels. Measure (count.go) counts the pairs of a layout,
// and a Panel (drawing.go) draws it in a terminal or as SVG.
//
// Start with pattern.go. The package imports device, and tensor for random numbers.
package attention
