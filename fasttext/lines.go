package fasttext

import (
	"bytes"
	"fmt"
	"strings"
)

// CheckLabel returns an error if a name would not stay a single token in a line.
func CheckLabel(name string) error {
	if name == "" || strings.ContainsAny(name, blanks) {
		return fmt.Errorf("%q is not a valid label: it is empty or contains blanks\n  try a name such as good", name)
	}
	return nil
}

// AppendLine appends a document as a training line: its label, then the text. Line ends become blanks, and words that
// look like labels are dropped. A Predictor sees the same words in the original text.
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
	return append(AppendWords(dst, text), '\n')
}

// AppendWords appends the words of a training line, without its labels, each with a blank after it.
func AppendWords(dst, line []byte) []byte {
	for start, end := nextToken(line, 0); start < len(line); start, end = nextToken(line, end) {
		if token := line[start:end]; !bytes.HasPrefix(token, []byte(LabelPrefix)) {
			dst = append(append(dst, token...), ' ')
		}
	}
	return dst
}

// LineLabels returns the labels of a training line, without their prefix.
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
