package yaml

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

const (
	maxDepth  = 64   // of values in values
	maxTokens = 8192 // without comments; keys, values and punctuation count as one each
	maxKey    = 64   // bytes, because the parser stores with every value the keys that lead to it
	maxRun    = 256  // of < in a row, and of tabs in a line
	maxEmpty  = 32   // lines without text in a row
	maxMarks  = 8    // marks of the beginning or end of a document
)

// checkRuns refuses texts for which the scanner takes quadratic time: from each < it looks to the end of the run, from
// each tab to the end of the line, and it removes the empty lines at the end of a scalar one by one.
func checkRuns(text []byte) *Error {
	line, run, tabs, empty := 1, 0, 0, 0
	blank := true // whether the line is blank so far
	for i, c := range text {
		if run++; c != '<' {
			run = 0
		}
		switch {
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n': // CR LF ends one line
		case c == '\n' || c == '\r':
			if empty++; !blank {
				empty = 0
			}
			line, tabs, blank = line+1, 0, true
		case c == '\t':
			tabs++
		case c != ' ':
			blank = false
		}
		fault := ""
		switch {
		case run > maxRun:
			fault = fmt.Sprintf("more than %d < in a row", maxRun)
		case tabs > maxRun:
			fault = fmt.Sprintf("more than %d tabs in a line", maxRun)
		case empty > maxEmpty:
			fault = fmt.Sprintf("more than %d lines without text in a row", maxEmpty)
		}
		if fault != "" {
			return &Error{Line: line, Column: 1, Message: fault}
		}
	}
	return nil
}

// checkTokens refuses anchors, aliases, merge keys and tags, and texts that would take the parser too long.
func checkTokens(tokens token.Tokens) *Error {
	n, marks := 0, 0
	var d depth
	for i, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		if n++; n > maxTokens {
			return fault(t.Position, "", "more than %d keys, values and signs between them", maxTokens)
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return fault(t.Position, "the value itself, wherever it is needed; text that begins with & or * "+
				"needs quotes", "anchors (&name), aliases (*name) and merge keys (<<) are not supported")
		case token.TagType:
			return fault(t.Position, "the value without it; text that begins with ! needs quotes",
				"tags (!name) are not supported")
		case token.DocumentHeaderType, token.DocumentEndType:
			if marks++; marks > maxMarks {
				return fault(t.Position, "one document in a file", "more than %d lines of --- or ...", maxMarks)
			}
		case token.MappingValueType:
			if i > 0 && len(tokens[i-1].Value) > maxKey {
				return fault(tokens[i-1].Position, "",
					"a key of %d bytes; at most %d are supported", len(tokens[i-1].Value), maxKey)
			}
		}
		if d.add(tokens, i); d.now() > maxDepth {
			return fault(t.Position, "fewer levels", "more than %d values nested in each other", maxDepth)
		}
	}
	return nil
}

// depth computes an upper bound of the number of values around a token.
type depth struct {
	columns []int // columns of the indicators that begin the block values around the token; ascending
	// for each bracket around the token, 1 plus the keys before the current value: {a: {b: 1}} counts 2 each
	flows []int
	flow  int // the sum of flows
}

func (d *depth) now() int { return len(d.columns) + d.flow }

func (d *depth) add(tokens token.Tokens, i int) {
	t := tokens[i]
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flows = append(d.flows, 1)
		d.flow++
		return
	case token.SequenceEndType, token.MappingEndType:
		if last := len(d.flows) - 1; last >= 0 {
			d.flow -= d.flows[last]
			d.flows = d.flows[:last]
		}
		return
	case token.CollectEntryType:
		if last := len(d.flows) - 1; last >= 0 {
			d.flow -= d.flows[last] - 1
			d.flows[last] = 1
		}
		return
	case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
	default:
		return
	}
	if last := len(d.flows) - 1; last >= 0 {
		d.flow++
		d.flows[last]++
		return
	}
	at := t.Position.Column
	if t.Type == token.MappingValueType && i > 0 && tokens[i-1].Position.Line == t.Position.Line {
		at = tokens[i-1].Position.Column // the key's
	}
	for len(d.columns) > 0 && d.columns[len(d.columns)-1] >= at {
		d.columns = d.columns[:len(d.columns)-1]
	}
	d.columns = append(d.columns, at)
}
