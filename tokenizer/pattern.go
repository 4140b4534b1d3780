package tokenizer

import (
	"fmt"
	"strings"
)

// The patterns of the hand-written splitters. The cl100k one is tiktoken's, with `\p{N}{1,3}` instead of
// `\p{N}{1,3}+`. They are equivalent, but Hugging Face tokenizers interpret a + after braces differently.
const (
	r50kRegex     = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	gpt2Regex     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100kRegex   = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	llama3Regex   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Regex    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	nanochatRegex = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	o200kRegex    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// otherNames are patterns of tiktoken that split every text like a known one, by name or as a regular expression; that
// of cl100k means something else to Hugging Face.
var otherNames = map[string]grammar{
	"r50k": gpt2, "p50k": gpt2, r50kRegex: gpt2,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`: cl100k,
}

// pattern is a pre-tokenizer pattern: one of the known ones, or a regular expression.
type pattern struct {
	name  string // gpt2, cl100k, …; "" for a custom regular expression
	regex string
	new   func() splitter
	parts []pattern // of a chain
}

var patterns = []pattern{
	gpt2:     {name: "gpt2", regex: gpt2Regex, new: func() splitter { return newHandSplitter(gpt2) }},
	cl100k:   {name: "cl100k", regex: cl100kRegex, new: func() splitter { return newHandSplitter(cl100k) }},
	llama3:   {name: "llama3", regex: llama3Regex, new: func() splitter { return newHandSplitter(llama3) }},
	qwen2:    {name: "qwen2", regex: qwen2Regex, new: func() splitter { return newHandSplitter(qwen2) }},
	nanochat: {name: "nanochat", regex: nanochatRegex, new: func() splitter { return newHandSplitter(nanochat) }},
	o200k:    {name: "o200k", regex: o200kRegex, new: func() splitter { return newHandSplitter(o200k) }},
}

// patternNames lists the names for error messages.
const patternNames = "gpt2 (r50k, p50k), cl100k, llama3, qwen2, nanochat, o200k"

// parsePattern accepts a name or a regular expression.
func parsePattern(s string) (pattern, error) {
	for _, p := range patterns {
		if s == p.name {
			return p, nil
		}
	}
	if g, ok := otherNames[s]; ok {
		return patterns[g], nil
	}
	return parseRegex(s)
}

// parseRegex accepts a regular expression; that of a known pattern selects its hand-written splitter.
func parseRegex(s string) (pattern, error) {
	for _, p := range patterns {
		if s == p.regex {
			return p, nil
		}
	}
	if s == r50kRegex {
		return patterns[gpt2], nil
	}
	if s == "" {
		return pattern{}, fmt.Errorf("empty pattern\n  try " + patternNames + " or a regular expression")
	}
	re, err := compileRegexp(s)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %.200q is not usable: %w\n  try "+patternNames+" or a regular expression",
			s, err)
	}
	return pattern{regex: s, new: func() splitter { return &regexpSplitter{re: re} }}, nil
}

// String returns the name of a known pattern, else the regular expression.
func (p pattern) String() string {
	if p.name != "" {
		return p.name
	}
	return p.regex
}

// chain returns the pattern that splits by the first of parts, each piece by the second, and so on.
func chain(parts []pattern) pattern {
	if len(parts) == 1 {
		return parts[0]
	}
	var all []string
	for _, p := range parts {
		all = append(all, p.regex)
	}
	return pattern{regex: strings.Join(all, "\n"), parts: parts, new: func() splitter {
		s := &chainSplitter{}
		for _, p := range parts {
			s.links = append(s.links, p.new())
		}
		return s
	}}
}

// chainSplitter splits a text with its first splitter, each piece with the second, and so on.
type chainSplitter struct {
	links       []splitter
	ends, finer []int // of all pretokens, as offsets in the text
	done        int
	buf         [512]int
}

func (s *chainSplitter) reset(text []byte) {
	s.ends, s.done = append(s.ends[:0], len(text)), 0
	for _, link := range s.links {
		s.finer = s.finer[:0]
		start := 0
		for _, end := range s.ends {
			link.reset(text[start:end])
			for n := link.next(s.buf[:]); n > 0; n = link.next(s.buf[:]) {
				for _, e := range s.buf[:n] {
					s.finer = append(s.finer, start+e)
				}
			}
			start = end
		}
		s.ends, s.finer = s.finer, s.ends
	}
}

func (s *chainSplitter) next(ends []int) int {
	n := copy(ends, s.ends[s.done:])
	s.done += n
	return n
}
