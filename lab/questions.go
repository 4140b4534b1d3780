package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"anneal/dataset"
)

// A Question is a prompt for a model.
type Question struct {
	Prompt string `json:"prompt"`

	// Hint, unless empty, is put before the prompt in a second try, if the answer to the prompt alone was rejected.
	Hint string `json:"hint,omitempty"`
}

// ReadQuestions reads a prompt from each line of a text, without empty lines. If the file is called NAME.jsonl, a line
// is a JSON object of a Question.
func ReadQuestions(name string, text []byte) (list []Question, err error) {
	n := 0
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		q := Question{Prompt: string(line)}
		if strings.HasSuffix(name, ".jsonl") {
			q = Question{}
			if err := json.Unmarshal(line, &q); err != nil {
				return nil, &dataset.Error{Err: fmt.Errorf("%s, line %d: %w\n"+
					`  a line is an object such as {"prompt": "12+34="}`, name, n, err)}
			}
		}
		if q.Prompt == "" {
			return nil, &dataset.Error{Err: fmt.Errorf("%s, line %d: the object has no \"prompt\"", name, n)}
		}
		list = append(list, q)
	}
	if len(list) == 0 {
		return nil, &dataset.Error{Err: fmt.Errorf("%s has no prompts\n  write one prompt on each line", name)}
	}
	return list, nil
}
