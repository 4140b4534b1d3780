// Package score puts a number on a text: how hard it is to learn from, or how good. One metric per file. A number is a function of the
// text alone; NaN means that the text has none. What orders samples by such numbers is dataset.Order; the command that
// makes them is `anneal data score`. It imports nothing else of this module.
//
// Start reading at metrics.go.
package score
