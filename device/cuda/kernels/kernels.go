// Package kernels holds the kernels in CUDA C++ as text: anneal.cuh, which all share, and one file for each group.
package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.cu*
var files embed.FS

// Source returns what is compiled of a file, "norm": what all share, a line "#define NAME VALUE" for each choice, and the file, with the text of
// what it includes in place of each line #include "NAME". There is no such file if ok is false.
func Source(file string, choices ...string) (text string, ok bool) {
	shared, _ := files.ReadFile("anneal.cuh")
	own, err := files.ReadFile(file + ".cu")
	if err != nil {
		return "", false
	}
	var b strings.Builder
	b.WriteString("#line 1 \"anneal.cuh\"\n")
	b.Write(shared)
	for _, c := range choices {
		b.WriteString("\n#define " + c)
	}
	b.WriteByte('\n')
	include(&b, file+".cu", string(own))
	return b.String(), true
}

// include writes a file and what it includes.
func include(b *strings.Builder, name, text string) {
	line := func(n int) { fmt.Fprintf(b, "#line %d \"%s\"\n", n, name) }
	line(1)
	n := 0
	for l := range strings.Lines(text) {
		n++
		if other, ok := strings.CutPrefix(l, "#include \""); ok {
			other = strings.TrimRight(other, "\"\n")
			part, _ := files.ReadFile(other)
			include(b, other, string(part))
			line(n + 1)
			continue
		}
		b.WriteString(l)
	}
}
