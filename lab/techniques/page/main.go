// Command page writes docs/measured.md from lab/techniques/results.json.
package main

import (
	"log"
	"os"
	"path/filepath"

	"anneal/internal/torture"
	"anneal/lab/techniques"
)

func main() {
	root, err := torture.Root()
	if err != nil {
		log.Fatal(err)
	}
	results, err := techniques.Committed()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, techniques.PageFile), techniques.Page(results), 0o666); err != nil {
		log.Fatal(err)
	}
}
