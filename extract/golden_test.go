package extract

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var classNames = map[class]string{short: "short", bad: "bad", neargood: "neargood", good: "good"}

// said returns what is known about each paragraph, in the form of testdata/golden.py.
func said(d *divider) [][]any {
	var out [][]any
	for _, p := range d.paragraphs {
		heading := 0.0
		if p.heading {
			heading = 1
		}
		text := strings.Join(strings.Fields(string(d.text[p.from:p.to])), " ")
		out = append(out, []any{text, float64(p.linked), heading, classNames[p.alone], classNames[p.class]})
	}
	return out
}

// The paragraphs, their characters in links and both classes equal jusText's, page by page.
func TestParagraphsAreThoseOfJusText(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var pages []struct {
		HTML       string
		Paragraphs [][]any
	}
	if err := json.Unmarshal(data, &pages); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, page := range pages {
		d, err := divide(strings.NewReader(page.HTML), false)
		if err != nil {
			t.Fatal(err)
		}
		classify(d.paragraphs, d.text)
		revise(d.paragraphs)
		if diff := cmp.Diff(page.Paragraphs, said(d)); diff != "" {
			t.Fatalf("page %d: %s", i, diff)
		}
		for _, p := range page.Paragraphs {
			count[p[3].(string)+" "+p[4].(string)]++
		}
	}
	for _, change := range []string{
		"bad bad", "good good", "short bad", "short good", "neargood bad", "neargood good",
	} {
		if count[change] < 20 {
			t.Errorf("only %d paragraphs go from %s: %v", count[change], change, count)
		}
	}
}
