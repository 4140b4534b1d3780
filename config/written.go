package config

// written is how a value was written in a configuration, which is how it is written again. Types that hold it are read
// once, when the configuration is. Those with an error of their own keep a text that they cannot read: the check
// reports it, with a suggestion that fits the other keys.
type written string

// String returns the text.
func (w written) String() string { return string(w) }

// Given reports whether there is any text.
func (w written) Given() bool { return w != "" }

// MarshalText implements encoding.TextMarshaler.
func (w written) MarshalText() ([]byte, error) { return []byte(w), nil }
