// Package techniques compares the techniques of docs/techniques.md with each other: the same model on the same text, a
// rate searched in the same way for each, several seeds, and a verdict by lab.Ablated. Only figures are stored;
// docs/measured.md is made from them.
//
// Start with Groups (groups.go), which lists the comparisons, then Run (run.go). Page (page.go) makes docs/measured.md
// from results.json. The package may import lab and packages below it.
package techniques

//go:generate go run ./page
