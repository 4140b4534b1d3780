// Package jsonlimit limits how much memory decoding an untrusted JSON text allocates: one megabyte of text can hold
// 300,000 empty objects, and each becomes a struct of a hundred bytes. It imports nothing of this module.
package jsonlimit

import "fmt"

// Limits is the most that a text may hold.
type Limits struct {
	Objects int // {}
	Values  int // in objects and lists, these among them
}

// Check counts what a text holds, whether it is JSON or not.
func (most Limits) Check(text []byte) error {
	objects, values := 0, 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // the next character is no end
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
