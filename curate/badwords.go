package curate

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	"anneal/dedup"
	"anneal/internal/fileio"
)

// BadWords drops documents that hold a word or phrase of a list, as C4 did with the "List of Dirty, Naughty, Obscene
// or Otherwise Bad Words" (Raffel et al. 2020, arXiv 1910.10683, section 2.2). A list is a text file with one phrase
// per line. The user provides it; none comes with this package. Words are compared in lower case, whatever characters
// separate them; all digits count as equal.
//
// Not for text in which such words are the subject, above all medicine and law: C4's list is known to have removed
// such text.
//
//	found  phrases of the list, counted as often as they stand ≤ 0
func BadWords(list *WordList) *Filter {
	find := finder{phrases: list.phrases}
	return &Filter{Name: "bad_words", Bounds: []Bound{atMost("found", 0)}, measure: func(d *Doc, values []float64) {
		find.find(d.Text, func(int32) { values[0]++ })
	}}
}

// WordList holds the phrases that BadWords looks for. Any number of filters may use one at the same time.
type WordList struct{ phrases *phrases }

// badWords is the stage.
var badWords = kind{
	name: "bad_words", bounds: BadWords(&WordList{newPhrases()}).Bounds,
	options: []option{{name: "list", value: "", required: true, files: true}},
	load: func(o given) (func() Stage, error) {
		list, err := ReadWordList(o.text("list"))
		if err != nil {
			return nil, err
		}
		return func() Stage { return BadWords(list) }, nil
	},
}

// maxWordList is the size of the largest list, in bytes, which can hold a million phrases.
const maxWordList = 16 << 20

// longestPhrase is the largest number of words in a phrase of a list.
const longestPhrase = 16

// ReadWordList reads a file with one word or phrase per line.
func ReadWordList(path string) (*WordList, error) {
	text, err := fileio.ReadSmall(path, maxWordList)
	if err != nil {
		return nil, err
	}
	p := newPhrases()
	var words dedup.Words
	lines := bufio.NewScanner(bytes.NewReader(text))
	number := 0
	for lines.Scan() {
		number++
		w := words.Hashes(lines.Bytes())
		switch {
		case len(w) > longestPhrase:
			return nil, fmt.Errorf("%s:%d: a phrase of %d words, more than %d\n"+
				"  try a file with one word or phrase per line", path, number, len(w), longestPhrase)
		case len(w) > 0:
			p.add(w, len(w), int32(number))
		case strings.TrimSpace(lines.Text()) != "":
			return nil, fmt.Errorf("%s:%d: %q holds no letter or digit, so it can match nothing\n  remove the line",
				path, number, clip(lines.Text()))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, number+1, err)
	}
	if len(p.from) == 0 {
		return nil, fmt.Errorf("%s holds no words\n  try a file with one word or phrase per line", path)
	}
	return &WordList{p}, nil
}
