// Package dash shows runs: on a page in the browser that follows them while they train, as the same page in one file,
// and as a summary in a terminal. It only reads the directories of runs.
//
// Start with Watch (watch.go), which holds the data of some runs. follow.go reads what a run appends to metrics.jsonl,
// scan.go parses its lines, and table.go keeps as many points of each number as a chart can show, however long the
// run. alerts.go finds what the user should know. view.go is the data that the page, the terminal and scripts receive;
// server.go serves it read-only, report.go writes the file, terminal.go draws 80 × 24 characters, terminalinside.go
// its lines on layers, memory and samples.
//
// page/ holds the page: plain scripts without dependencies, embedded in the binary. No Go module carries a maintained
// script for charts that suits: those that exist load it from the network, need inline scripts, or are larger than the
// rest of the binary may grow.
//
// The package may import run and the packages below it.
package dash
