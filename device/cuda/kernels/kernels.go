// Package kernels holds the kernels in CUDA C++ as text: anneal.cuh, which all share, and one file for each group.
package kernels

import (
	"embed"
	"strings"
)

//go:embed *.cu*
var files embed.FS

// Source returns what is compiled of a file, "norm": what all share, a line "#define NAME VALUE" for each choice, and the file. There is no
// such file if ok is false.
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
	b.WriteString("\n#line 1 \"" + file + ".cu\"\n")
	b.Write(own)
	return b.String(), true
}
