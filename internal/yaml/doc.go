// Package yaml parses small YAML files of any origin in bounded time and memory.
//
// The parser is goccy/go-yaml. Its time and memory grow with the square of the nesting, of the number of tokens and
// of some runs of characters. Before each part of that parser sees a text, this package checks the text against
// limits far above any real configuration. It also refuses anchors, aliases, merge keys and tags, which no
// configuration here uses. Start with [Parse]. The package imports nothing of this module.
package yaml
