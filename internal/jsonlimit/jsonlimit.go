// Package jsonlimit limits how much memory decoding an untrusted JSON text allocates: one megabyte of text can hold
// 300,000 empty objects, and each becomes a struct of a hundred bytes. It imports nothing of this module.
package jsonlimit

import "fmt"

// Limits are the largest counts that a text may have.
type Limits struct {
	Objects int // {}
	Values  int // values in objects and lists, including objects and lists
}

// Check returns an error if a text exceeds the limits, whether it is JSON or not.
func (most Limits) Check(text []byte) error {
	objects, values := 0, 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // the escaped character does not end the string
		case inString:
		case c == '{':
			objects++
			values++
		case c == '[' || c == ',':
			values++
		}
	}
	switch {
	case objects > most.Objects:
		return fmt.Errorf("%d objects, more than %d", objects, most.Objects)
	case values > most.Values:
		return fmt.Errorf("%d values, more than %d", values, most.Values)
	}
	return nil
}
