package curate_test

import (
	"fmt"

	"anneal/curate"
)

// Stages look at one document at a time; Run applies a pipeline to files.
func ExamplePipeline_NewStages() {
	p, err := curate.Parse([]byte("stages:\n  - normalize\n  - gopher_quality: {words: {min: 4}}\n"), "mine.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	stages := p.NewStages() // for one goroutine
	for _, text := range []string{"The people that live there have water   \r\n", "too short"} {
		d := &curate.Doc{Text: []byte(text)}
		verdict := curate.Verdict{}
		for _, s := range stages {
			if verdict = s.Apply(d); verdict.Drop {
				break
			}
		}
		fmt.Printf("%q is dropped by %q\n", d.Text, verdict.Rule)
	}
	// Output:
	// "The people that live there have water" is dropped by ""
	// "too short" is dropped by "gopher_quality.words"
}
