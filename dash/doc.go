// Package dash shows runs: a page in the browser that follows them while they train, the same page as one file, and
// the same at a glance in a terminal. It only reads the directories of runs.
//
// Start with Watch (watch.go), which holds what is known of some runs. follow.go reads what a run appends to
// metrics.jsonl, scan.go parses its lines, and table.go keeps so many points of each number that a chart has use for,
// however long the run. alerts.go notices what a person should know. view.go is what the page, the terminal and scripts
// are told; server.go serves it read-only, report.go writes the file, terminal.go draws 80 × 24 characters,
// terminalinside.go its lines on layers, memory and samples.
//
// page/ holds the page: plain scripts without dependencies, embedded in the binary. No Go module carries a maintained
// script for charts that suits: those that exist load it from the network, need inline scripts, or are larger than the
// rest of the binary may grow.
//
// The package may import run and what stands below it.
package dash
