package primer

import (
	"slices"
	"strings"
)

// A Table is one of the tables.
type Table struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Columns []string   `json:"columns"` // with their units
	Rows    [][]string `json:"rows"`    // the name of what the row is about, and a cell for each other column
	Notes   string     `json:"notes"`   // what the columns mean, and sources
}

// topics are the tables, with other names by which they are asked for: those of their rows count, too.
var topics = []struct {
	name    string
	aliases []string
	table   func() (*Table, error)
}{
	{"formats", []string{"format", "e4m3", "e5m2", "float8"}, formatTable},
	{"optimizers", []string{"adam-memory", "8bit"}, optimizerTable},
	{"mixed-precision", []string{"mixed", "amp", "master-weights"}, mixedTable},
	{"zero", []string{"fsdp", "sharding"}, zeroTable},
	{"recompute", []string{"checkpointing", "activation-checkpointing", "activations"}, recomputeTable},
}

// Topics returns the names of the tables.
func Topics() (list []string) {
	for _, t := range topics {
		list = append(list, t.name)
	}
	return list
}

// Find returns the table of a name, or the one that has a row of this name; nil if there is none.
func Find(name string) (*Table, error) {
	name = strings.ToLower(name)
	for _, t := range topics {
		if t.name == name || slices.Contains(t.aliases, name) {
			return t.table()
		}
	}
	if _, is := formatOf(name); is {
		return formatTable()
	}
	if slices.Contains(optimizers, name) {
		return optimizerTable()
	}
	return nil, nil
}
