// Package claims measures what papers and tutorials claim about training language models: a factor, a size, a rule of
// thumb. Each Claim says who claims it, how it is measured here, and by which rule figures become a verdict. The
// verdict is computed; only figures are stored.
//
// There is one file per theme, such as memory.go. A claim is measured by a plan, by counting, by a timing, or by small
// training runs.
//
// Start with Claim (claim.go), then Run (run.go). Page (page.go) makes docs/claims.md from results.json. The package
// may import lab and what stands below it.
package claims

//go:generate go run ./page
