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

// topics are the tables, with the other name that the field has for some.
var topics = []struct {
	name, alias string
	table       func() (*Table, error)
}{
	{"formats", "", formatTable},
	{"optimizers", "", optimizerTable},
	{"mixed-precision", "amp", mixedTable},
	{"zero", "fsdp", zeroTable},
	{"recompute", "checkpointing", recomputeTable},
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
		if name != "" && (t.name == name || t.alias == name) {
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
