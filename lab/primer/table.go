package primer

import (
	"slices"
	"strings"
)

// A Table is a table of the primer.
type Table struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Columns []string   `json:"columns"` // with their units
	Rows    [][]string `json:"rows"`    // the name of the row's subject, and a cell for each other column
	Notes   string     `json:"notes"`   // meaning of the columns, and sources
}

// topics lists the tables, some with another name that is common in the field.
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

// Find returns the table with the given name, or the table with a row of this name; nil if there is none.
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
