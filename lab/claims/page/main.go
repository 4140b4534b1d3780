// Command page writes docs/claims.md from lab/claims/results.json.
package main

import (
	"log"
	"os"
	"path/filepath"

	"anneal/internal/torture"
	"anneal/lab/claims"
)

func main() {
	root, err := torture.Root()
	if err != nil {
		log.Fatal(err)
	}
	results, err := claims.Committed()
	if err != nil {
		log.Fatal(err)
	}
	text, err := claims.Page(results)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, claims.PageFile), text, 0o666); err != nil {
		log.Fatal(err)
	}
}
