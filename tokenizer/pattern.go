package tokenizer

import "fmt"

// The patterns of the hand-written splitters. The cl100k one is tiktoken's, with `\p{N}{1,3}` in place of its
// `\p{N}{1,3}+`: equal there, and the regular expressions of Hugging Face tokenizers read a + after braces otherwise.
const (
	gpt2Regex     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100kRegex   = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	llama3Regex   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Regex    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	nanochatRegex = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	o200kRegex    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// otherNames are patterns that cut every text as a known one does, by name or as others write them: r50k and p50k as
// tiktoken does, and its cl100k.
var otherNames = map[string]grammar{
	"r50k": gpt2, "p50k": gpt2,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`:                                       gpt2,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`: cl100k,
}

// pattern is a pre-tokenizer pattern: one of the known ones, or a regular expression.
type pattern struct {
	name  string // gpt2, cl100k, …; "" for a regular expression of the user's
	regex string
	new   func() splitter
}

var patterns = []pattern{
	gpt2:     {"gpt2", gpt2Regex, func() splitter { return newHandSplitter(gpt2) }},
	cl100k:   {"cl100k", cl100kRegex, func() splitter { return newHandSplitter(cl100k) }},
	llama3:   {"llama3", llama3Regex, func() splitter { return newHandSplitter(llama3) }},
	qwen2:    {"qwen2", qwen2Regex, func() splitter { return newHandSplitter(qwen2) }},
	nanochat: {"nanochat", nanochatRegex, func() splitter { return newHandSplitter(nanochat) }},
	o200k:    {"o200k", o200kRegex, func() splitter { return newHandSplitter(o200k) }},
}

// patternNames is what an error offers.
const patternNames = "gpt2 (r50k, p50k), cl100k, llama3, qwen2, nanochat, o200k"

// parsePattern accepts a name or a regular expression; the text of a known pattern gets its hand-written splitter.
func parsePattern(s string) (pattern, error) {
	for _, p := range patterns {
		if s == p.name || s == p.regex {
			return p, nil
		}
	}
	if g, ok := otherNames[s]; ok {
		return patterns[g], nil
	}
	if s == "" {
		return pattern{}, fmt.Errorf("empty pattern\n  try " + patternNames + " or a regular expression")
	}
	re, err := compileRegexp(s)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %.200q cannot be used: %w\n  try "+patternNames+" or a regular expression", s, err)
	}
	return pattern{regex: s, new: func() splitter { return &regexpSplitter{re: re} }}, nil
}

// String is the name of a known pattern, else the regular expression.
func (p pattern) String() string {
	if p.name != "" {
		return p.name
	}
	return p.regex
}
