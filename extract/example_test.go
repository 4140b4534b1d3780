package extract_test

import (
	"fmt"
	"strings"

	"anneal/extract"
)

func ExampleText() {
	page := `<nav><a href="/">Home</a></nav><h1>Rain</h1><p>` +
		strings.Repeat("Rain is water that falls from clouds in drops. ", 5) + `<p>Follow us!</p><p>© 2020`
	text, err := extract.Text([]byte(page), "text/html; charset=utf-8")
	fmt.Printf("%.60s… %v\n", text, err)
	// Output:
	// Rain
	//
	// Rain is water that falls from clouds in drops. Rain is… <nil>
}
