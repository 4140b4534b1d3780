package synth

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"anneal/internal/fileio"
)

// mostItems is how many of a text's prompts a task asks.
const mostItems = 256

// An Item is a prompt of a text with its continuation.
type Item struct {
	Prompt string `json:"prompt"`
	Answer string `json:"answer"`
}

// Items returns the first prompts of the held-out documents or, if there are none, of the documents to train on.
// Documents without a prompt are skipped.
func (t Text) Items() (list []Item) {
	docs := t.Val
	if len(docs) == 0 {
		docs = t.Train
	}
	seen := map[string]bool{}
	for _, doc := range docs {
		prompt, answer, ok := strings.Cut(doc, t.PromptEnd)
		if t.PromptEnd == "" || !ok || answer == "" || seen[doc] || len(list) == mostItems {
			continue
		}
		seen[doc] = true
		list = append(list, Item{prompt + t.PromptEnd, answer})
	}
	return list
}

// task asks for whole answers: acc counts the answers whose tokens are all the likeliest ones, and rises suddenly;
// perplexity falls smoothly.
const task = `task: answers
dataset_path: json
dataset_kwargs:
  data_files:
    test: answers.jsonl
test_split: test
output_type: loglikelihood
doc_to_text: prompt
doc_to_target: answer
target_delimiter: ""
metric_list:
  - metric: acc
  - metric: perplexity
`

// WriteTasks writes the Items as a task for eval.tasks and anneal eval --tasks into dir, which it makes, and returns
// how many there are. Without any it writes nothing.
func (t Text) WriteTasks(dir string) (items int, err error) {
	list := t.Items()
	if len(list) == 0 {
		return 0, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	err = fileio.Write(filepath.Join(dir, "answers.jsonl"), func(w io.Writer) error {
		b := bufio.NewWriter(w)
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		for _, item := range list {
			if err := e.Encode(item); err != nil {
				return err
			}
		}
		return b.Flush()
	})
	if err != nil {
		return 0, err
	}
	return len(list), fileio.Write(filepath.Join(dir, "answers.yaml"), func(w io.Writer) error {
		_, err := io.WriteString(w, task)
		return err
	})
}
