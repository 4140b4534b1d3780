// Command gen draws the pictures of docs/parallel.md.
package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"

	"anneal/internal/svg"
)

// pictures are the files in docs/img.
var pictures = map[string]func() []byte{
	"ranks-own.svg": owners, "ranks-step.svg": step, "pipelines.svg": pipelines,
}

func main() {
	for name, draw := range pictures { // relative to the package with the go:generate line
		if err := os.WriteFile(filepath.Join("../docs/img", name), draw(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// ranks are the colours of the ranks and of the parts that they own.
var ranks = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44"}

const (
	small  = `font-size="12" fill="#333"`
	bold   = `font-size="13" fill="#111" font-weight="bold"`
	middle = ` text-anchor="middle"`
)

func bytesOf(p *svg.Picture, width, height float64) []byte {
	var b bytes.Buffer
	if err := p.WriteTo(&b, width, height); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}
