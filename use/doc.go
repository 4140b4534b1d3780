// Package use is a trained model in use: it opens a run (trained.go), generates one text (generate.go, text.go) or many
// in shared passes (scheduler.go, many.go), evaluates, also beyond the training context (reach.go), scores documents
// (docloss.go), answers tasks (tasks.go) and exports (export.go).
//
// Start with Trained (trained.go). The package may import run, train, interop, prepare and what stands below them.
package use
