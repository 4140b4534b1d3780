package config

// written is the text of a value in a configuration; it is written back unchanged. Types with this field parse the
// text once, when the configuration is read. Types with an error field keep a text that they cannot parse: Validate
// reports it, with a suggestion that fits the other keys.
type written string

// String returns the text.
func (w written) String() string { return string(w) }

// Given reports whether there is any text.
func (w written) Given() bool { return w != "" }

// MarshalText implements encoding.TextMarshaler.
func (w written) MarshalText() ([]byte, error) { return []byte(w), nil }
