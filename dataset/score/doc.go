// Package score computes numbers for texts: how hard they are to learn from, or how good they are. Each metric has
// its own file. A number is a function of the text alone; NaN means that the text has none. dataset.Order orders
// samples by such numbers; the command `anneal data score` computes them. It imports nothing else of this module.
//
// Start reading at metrics.go.
package score
