package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"anneal/config"
	"anneal/lab/primer"
)

// explainTable prints a table of the field. key is the config key of the same name, which is explained before the
// table.
func explainTable(s *session, t *primer.Table, key *config.Key) error {
	if key != nil {
		s.printf("\n")
	}
	s.printf("%s\n\n", t.Title)
	width := make([]int, len(t.Columns))
	for _, row := range slices.Concat([][]string{t.Columns}, t.Rows) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range slices.Concat([][]string{t.Columns}, t.Rows) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if text := i == 0 || i == len(row)-1 || t.Name == "zero" && i == 1; text {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		s.printf("  %s\n", strings.TrimRight(line.String(), " "))
	}
	s.prosef("  ", "\n  %s\n", t.Notes)
	if key == nil {
		return s.emit(t)
	}
	return s.emit(struct {
		config.Key
		Table *primer.Table `json:"table"`
	}{*key, t})
}
