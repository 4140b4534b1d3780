// Package yaml parses small YAML files of any origin in bounded time and memory.
//
// The parser is goccy/go-yaml, whose time and memory grow with the square of the nesting, of the number of tokens and of some runs of
// characters. This package holds a text against limits that no configuration comes near before each part of that parser sees it, and
// refuses what no configuration here uses: anchors, aliases, merge keys and tags. [Parse] is where to start; it imports nothing of
// this module.
package yaml
