// Package kernels holds the kernels as CUDA C++ text: anneal.cuh, which all share, and one file per group.
package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.cu*
var files embed.FS

// Source returns the text to compile for a file, such as "norm": the shared part, a line "#define NAME VALUE" for
// each choice, and the file, with each line #include "NAME" replaced by the text of that file. ok is false if there
// is no such file.
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

// include writes a file with its includes.
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
