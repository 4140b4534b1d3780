package score

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// ReadLines reads the scores of documents from text with one line per document, in order: a number, null for none, or
// an object with such a "score". Lines are at most 1 MiB long.
func ReadLines(r io.Reader, documents uint64) ([]float32, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var scores []float32
	for lines.Scan() {
		v, err := parseLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(scores)+1, err)
		}
		if scores = append(scores, v); uint64(len(scores)) > documents {
			return nil, fmt.Errorf("more than %d lines; the training split has one document per line", documents)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is longer than 1 MiB", len(scores)+1)
	}
	if lines.Err() != nil {
		return nil, lines.Err()
	}
	if uint64(len(scores)) != documents {
		return nil, fmt.Errorf("%d lines, but the training split has %d documents", len(scores), documents)
	}
	return scores, nil
}

func parseLine(line []byte) (float32, error) {
	var v *float64
	var err error
	if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' {
		object := map[string]json.RawMessage{}
		if err = json.Unmarshal(line, &object); err == nil {
			raw, has := object["score"]
			if !has {
				return 0, errors.New(`the object has no "score"`)
			}
			err = json.Unmarshal(raw, &v)
		}
	} else {
		err = json.Unmarshal(line, &v)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("expected a number, null or an object with a \"score\", got %.40q", line)
	case v == nil:
		return float32(math.NaN()), nil
	case math.IsInf(float64(float32(*v)), 0):
		return 0, fmt.Errorf("%v is too large", *v)
	}
	return float32(*v), nil
}
