// Command anneal pre-trains language models: raw text to a trained model that other tools open.
//
// This package parses the command line, calls the packages that do the work, and prints. Each command is a file; cli.go
// lists them, args.go and session.go hold what they share, exit.go the exit codes. Results go to standard output, everything for
// people's eyes to standard error.
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
