package corpus_test

import (
	"fmt"
	"os"
	"path/filepath"

	"anneal/corpus"
)

// Documents of a directory: a text file is one, and so is each line of JSON lines. What is left out is reported.
func Example() {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"a.txt": "one document", "b.jsonl": "{\"text\": \"a second\"}\n{\"text\": \"a third\"}\n{\"body\": \"lost\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := corpus.Open([]string{dir}, corpus.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range r.Documents() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, %d: %s\n", filepath.Base(d.Source), d.Index, d.Text)
	}
	for _, left := range r.Report().Rejects {
		fmt.Println(left.Count, left.Reason)
	}
	// Output:
	// a.txt, 0: one document
	// b.jsonl, 0: a second
	// b.jsonl, 1: a third
	// 1 no text field
}
