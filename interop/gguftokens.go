package interop

import (
	"fmt"
	"strings"

	"anneal/gguf"
	"anneal/tokenizer"
)

// Kinds of tokens in tokenizer.ggml.token_type.
const (
	tokenNormal      int32 = 1
	tokenControl     int32 = 3 // a special token, which no text yields
	tokenUserDefined int32 = 4 // an added token, which any text yields
	tokenUnused      int32 = 5
)

// splitters maps patterns to llama.cpp's names for code that splits text in the same way. whole is for tokenizers that
// encode a pretoken that is a token as that token, whatever the merges. llama.cpp approximates o200k, and does not
// support cl100k and nanochat.
var splitters = map[string]struct{ merged, whole string }{
	"gpt2":   {merged: "gpt-2"},
	"llama3": {merged: "smaug-bpe", whole: "llama-bpe"},
	"qwen2":  {merged: "qwen2"},
}

// ggufTokenizer returns the metadata of a tokenizer for a model with vocab rows, where rows without a token are marked
// unused. It also returns notes on what llama.cpp does differently.
func ggufTokenizer(tok *tokenizer.Tokenizer, vocab int) (list []gguf.KV, notes []string, err error) {
	pre, err := splitter(tok)
	if err != nil {
		return nil, nil, err
	}
	eot, err := tok.EndOfText()
	if err != nil {
		return nil, nil, fmt.Errorf("the tokenizer has no token that ends a text, and llama.cpp would take token 11 "+
			"for it: %w\n  train the tokenizer with --special '<|endoftext|>', or use --to hf", err)
	}
	if n := tok.VocabSize(); n > vocab {
		return nil, nil, fmt.Errorf("the tokenizer has %d tokens, but the model has rows for %d", n, vocab)
	}
	texts, kinds := make([]string, vocab), make([]int32, vocab)
	for id := range vocab {
		if texts[id] = tok.ByteLevel(uint32(id)); texts[id] != "" {
			kinds[id] = tokenNormal
			continue
		}
		texts[id], kinds[id] = fmt.Sprintf("[PAD%d]", id), tokenUnused
	}
	for _, s := range tok.Specials() {
		texts[s.ID], kinds[s.ID] = s.Text, tokenControl
		if s.Added {
			kinds[s.ID] = tokenUserDefined
		}
	}
	var merges []string
	for left, right := range tok.Merges() {
		merges = append(merges, tok.ByteLevel(left)+" "+tok.ByteLevel(right))
	}
	before, after := tok.Around()
	bos := eot
	if len(before) > 0 {
		bos = before[0]
	}
	if len(before) > 1 || len(after) > 1 || len(after) == 1 && after[0] != eot {
		notes = append(notes, "the tokenizer puts more around a text than llama.cpp can: one token before it and the "+
			"end of text after it")
	}
	if n := tok.Normalizer(); n != "" {
		notes = append(notes, "llama.cpp does not convert text to "+n+", as the tokenizer does: other text gets other "+
			"tokens there")
	}
	return []gguf.KV{
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: pre},
		{Key: "tokenizer.ggml.tokens", Value: texts}, {Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.merges", Value: merges},
		{Key: "tokenizer.ggml.bos_token_id", Value: bos}, {Key: "tokenizer.ggml.eos_token_id", Value: eot},
		{Key: "tokenizer.ggml.add_bos_token", Value: len(before) > 0},
		{Key: "tokenizer.ggml.add_eos_token", Value: len(after) > 0},
		{Key: "tokenizer.ggml.add_space_prefix", Value: false},
	}, notes, nil
}

// splitter returns llama.cpp's name for how a tokenizer splits text.
func splitter(tok *tokenizer.Tokenizer) (string, error) {
	known := splitters[tok.Pattern()]
	name, how := known.merged, ""
	if tok.IgnoresMerges() {
		name, how = known.whole, " and encodes words that are tokens without merges (ignore_merges)"
	}
	if name != "" {
		return name, nil
	}
	pattern := tok.Pattern()
	if strings.ContainsAny(pattern, ` |\`) {
		pattern = fmt.Sprintf("the regular expression %.60q", pattern)
	}
	return "", fmt.Errorf("the tokenizer splits text by %s%s, which llama.cpp cannot do: it would read other "+
		"tokens\n  train the tokenizer with --pattern llama3 (the default), gpt2 or qwen2, or use --to hf",
		pattern, how)
}
