// Command page writes docs/reliability.md from docs/reliability.jsonl.
package main

import (
	"log"
	"os"
	"path/filepath"

	"anneal/internal/torture"
)

func main() {
	root, err := torture.Root()
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, torture.ReportFile))
	if err != nil {
		log.Fatal(err)
	}
	records, err := torture.ParseReport(text)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, torture.PageFile), torture.Page(records), 0o666); err != nil {
		log.Fatal(err)
	}
}
