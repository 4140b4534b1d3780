package study

import (
	"encoding/json"
	"io"

	"anneal/internal/fileio"
)

// WriteResults writes a file of measured figures as indented JSON, atomically.
func WriteResults(path string, figures any) error {
	return fileio.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(figures)
	})
}
