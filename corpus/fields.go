package corpus

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Documents keep their fields. A written line holds the fields as read, in their order, then the text, then the place
// that the document came from:
//
//	{"id":"7","meta":{"lang":"en"},"text":"…","anneal":{"source":"crawl/a.jsonl","offset":1234}}
//
// The names "text" and "anneal" are reserved. Fields of these names move into "anneal": an "anneal" that an earlier
// command wrote is kept as "from", and a "text" that is not the text as "text".
const (
	textName  = "text"
	placeName = "anneal"
	fromName  = "from"
)

// appendField appends a member with a JSON value to the fields of a document, or to moved if its name is reserved.
func appendField(fields, moved, name, value []byte) (newFields, newMoved []byte) {
	switch {
	case nameIs(name, placeName):
		return fields, appendMember(moved, []byte(`"`+fromName+`"`), value)
	case nameIs(name, textName):
		return fields, appendMember(moved, name, value)
	}
	return appendMember(fields, name, value), moved
}

// appendMember appends a member to the members of an object. The name is quoted already.
func appendMember(members, name, value []byte) []byte {
	if len(members) > 0 {
		members = append(members, ',')
	}
	return append(append(append(members, name...), ':'), value...)
}

// Line is the content of a written line. Fields and Place are members of a JSON object, with commas between them.
type Line struct {
	Text   []byte
	Fields []byte // of the document besides the text
	Place  []byte // where it came from: the members of "anneal"

	read object
}

// Append appends the line, with its end, to b. Bytes that are not UTF-8 stay as they are.
func (l *Line) Append(b []byte) []byte {
	b = append(b, '{')
	if len(l.Fields) > 0 {
		b = append(append(b, l.Fields...), ',')
	}
	b = AppendString(append(b, `"`+textName+`":`...), l.Text)
	b = append(append(b, `,"`+placeName+`":{`...), l.Place...)
	return append(b, "}}\n"...)
}

// Parse reads a line that Append has written. The results are valid until the next call.
func (l *Line) Parse(line []byte) error {
	o := &l.read
	if err := o.parse(line, textName, true); err != nil {
		return err
	}
	place, ok := bytes.CutPrefix(o.moved, []byte(`"`+fromName+`":{`))
	if !ok {
		return errNoField
	}
	l.Text, l.Fields, l.Place = o.text, o.fields, place[:len(place)-1]
	return nil
}

// Document is the text and the fields in memory of their own.
func (l *Line) Document() Document { return owned(l.Text, l.Fields, nil) }

// AppendPlace appends the place where a document was read; a Line's Place begins with it. The bytes of a file's name
// that are not UTF-8 become U+FFFD.
func AppendPlace(b []byte, source string, offset int64) []byte {
	if !utf8.ValidString(source) {
		source = string([]rune(source))
	}
	b = AppendString(append(b, `"source":`...), []byte(source))
	return strconv.AppendInt(append(b, `,"offset":`...), offset, 10)
}
