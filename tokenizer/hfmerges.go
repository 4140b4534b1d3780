package tokenizer

import (
	"bytes"
	"fmt"
)

// mergeList collects merges in the forms that files have.
type mergeList struct {
	vocab  *interner // the ordinary tokens, to which it adds those of added that merges form
	ids    []uint32
	added  map[string]Special // by text
	merges []merge
	token  []byte
}

// parse reads merges, each a pair of strings or one string with a space between the two.
func (l *mergeList) parse(data []byte) error {
	c := jsonCursor{data: data}
	return c.array(func(i int) error {
		left, right, err := mergeText(&c)
		if err == nil && left != nil { // nil: the version line of merges.txt
			err = l.add(left, right)
		}
		if err != nil {
			return fmt.Errorf("model.merges[%d]: %w", i, err)
		}
		return nil
	})
}

// add adds the merge of two tokens in the byte-level alphabet.
func (l *mergeList) add(left, right []byte) (err error) {
	l.token, _ = appendBytes(l.token[:0], left)
	n := len(l.token)
	l.token, _ = appendBytes(l.token, right)
	var m merge
	if m.left, err = l.find(left, l.token[:n]); err != nil {
		return err
	}
	if m.right, err = l.find(right, l.token[n:]); err != nil {
		return err
	}
	if m.id, err = l.find(append(bytes.Clone(left), right...), l.token); err != nil {
		return err
	}
	l.merges = append(l.merges, m)
	return nil
}

func (l *mergeList) find(name, token []byte) (uint32, error) {
	if n := l.vocab.find(token); n >= 0 {
		return l.ids[n], nil
	}
	s, is := l.added[string(name)]
	switch {
	case !is || !bytes.Equal(appendByteLevel(nil, token), name): // no text in the byte-level alphabet
		return 0, fmt.Errorf("%.100q is not in the vocabulary", name)
	case !s.Added:
		return 0, fmt.Errorf("%.100q has \"special\": true in added_tokens, but merges form it, too: only "+
			"\"special\": false is supported there", name)
	}
	l.vocab.add(token)
	l.ids = append(l.ids, s.ID)
	return s.ID, nil
}

// mergeText reads the two tokens of a merge.
func mergeText(c *jsonCursor) (left, right []byte, err error) {
	if c.peek() == '"' {
		return mergeLine(c.str())
	}
	var pair [2][]byte
	n := 0
	err = c.array(func(i int) error {
		s, err := c.text()
		if i < 2 {
			pair[i] = s
		}
		n++
		return err
	})
	if err == nil && n != 2 {
		err = fmt.Errorf("%d tokens, not two", n)
	}
	return pair[0], pair[1], err
}

// versionMark begins the line of a merges.txt that names its version, and every other line that Hugging Face skips.
const versionMark = "#version"

// mergeLine splits a line of merges.txt; it returns nil, nil for the version line.
func mergeLine(line []byte) (left, right []byte, err error) {
	if bytes.HasPrefix(line, []byte(versionMark)) {
		return nil, nil, nil
	}
	left, right, ok := bytes.Cut(line, []byte(" "))
	if !ok || bytes.IndexByte(right, ' ') >= 0 {
		return nil, nil, fmt.Errorf("%.100q is not two tokens with a space between", line)
	}
	return left, right, nil
}
