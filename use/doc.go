// Package use runs trained models. It opens a run (trained.go), generates one text (generate.go, text.go) or many in
// shared passes (scheduler.go, many.go), evaluates, even beyond the training context (reach.go), scores documents
// (docloss.go), answers tasks (tasks.go) and exports (export.go).
//
// Start with Trained (trained.go). The package may import run, train, interop, prepare and packages below them.
package use
