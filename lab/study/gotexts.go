package study

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anneal/prepare"
	"anneal/prepare/synth"
)

// goTexts returns code and prose of the Go standard library, about the given number of bytes of each: the lines
// without comments, and the text of lines that are only comments. Every twentieth file is held out.
func goTexts(size int) (code, prose synth.Text, err error) {
	source, err := prepare.GoSource()
	if err != nil {
		return code, prose, err
	}
	files := 0
	sizes := map[*synth.Text]int{}
	add := func(t *synth.Text, document string) {
		if len(document) < 200 || sizes[t] >= size {
			return
		}
		sizes[t] += len(document)
		if files%20 == 0 {
			t.Val = append(t.Val, document)
		} else {
			t.Train = append(t.Train, document)
		}
	}
	err = filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == "testdata" || name == "vendor" || name == "cmd"):
			return fs.SkipDir
		case sizes[&code] >= size && sizes[&prose] >= size:
			return fs.SkipAll
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.Contains(text, []byte("DO NOT EDIT")) {
			return err
		}
		files++
		lines, comments := splitGo(string(text))
		add(&code, lines)
		add(&prose, comments)
		return nil
	})
	if err == nil && (len(code.Val) == 0 || len(prose.Val) == 0) {
		err = fmt.Errorf("%s has too little text: %d files", source, files)
	}
	return code, prose, err
}

// splitGo returns the lines of a Go file that are code, and the text of comments that fill whole lines. Directives and
// the copyright notice are neither.
func splitGo(file string) (code, comments string) {
	var c, p strings.Builder
	for line := range strings.Lines(file) {
		text, comment := strings.CutPrefix(strings.TrimSpace(line), "//")
		switch {
		case !comment:
			c.WriteString(line)
		case text == "" || text[0] == ' ' || text[0] == '\t':
			p.WriteString(strings.TrimPrefix(text, " "))
			p.WriteByte('\n')
		}
	}
	if notice, rest, ok := strings.Cut(p.String(), "LICENSE file.\n"); ok && len(notice) < 300 {
		return c.String(), rest
	}
	return c.String(), p.String()
}
