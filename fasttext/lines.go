package fasttext

import (
	"bytes"
	"fmt"
	"strings"
)

// CheckLabel refuses names that would not stay one token in a line.
func CheckLabel(name string) error {
	if name == "" || strings.ContainsAny(name, blanks) {
		return fmt.Errorf("%q is not a valid label: it is empty or contains blanks\n  try a name such as good", name)
	}
	return nil
}

// AppendLine appends a document as a line to train on: its label, and the text with blanks for line ends and without what
// looks like a label. A Predictor takes the text as it is for the same words.
func AppendLine(dst []byte, label string, text []byte) []byte {
	dst = append(append(append(dst, LabelPrefix...), label...), ' ')
	if !bytes.Contains(text, []byte(LabelPrefix)) {
		at := len(dst)
		dst = append(dst, text...)
		for i := at; i < len(dst); i++ {
			if dst[i] == '\n' {
				dst[i] = ' '
			}
		}
		return append(dst, '\n')
	}
	for start, end := nextToken(text, 0); start < len(text); start, end = nextToken(text, end) {
		if token := text[start:end]; !bytes.HasPrefix(token, []byte(LabelPrefix)) {
			dst = append(append(dst, token...), ' ')
		}
	}
	return append(dst, '\n')
}

// LineLabels returns the labels of a line to train on, without their prefix.
func LineLabels(line []byte) (labels []string) {
	for start, end := nextToken(line, 0); start < len(line); start, end = nextToken(line, end) {
		token := line[start:end]
		if string(token) == endOfLine {
			break
		}
		if name, ok := bytes.CutPrefix(token, []byte(LabelPrefix)); ok {
			labels = append(labels, string(name))
		}
	}
	return labels
}
