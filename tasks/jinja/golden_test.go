package jinja

import (
	"encoding/json"
	"os"
	"testing"
)

type rendered struct{ Template, Text string }

// golden reads what jinja2 made of templates.
func golden(t testing.TB) (list []rendered) {
	text, err := os.ReadFile("testdata/jinja.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}
