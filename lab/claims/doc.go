// Package claims measures what papers and tutorials claim about training language models: a factor, a size, a rule of
// thumb. Each Claim gives its source, the measurement here, and the rule that turns figures into a verdict. The
// verdict is computed; only figures are stored.
//
// There is one file per theme, such as memory.go. A claim is measured by a plan, by counting, by a timing, or by small
// training runs.
//
// Start with Claim (claim.go), then Run (run.go). Page (page.go) makes docs/claims.md from results.json. The package
// may import lab and packages below it.
package claims

//go:generate go run ./page
