package interop

import (
	"fmt"
	"slices"
	"strings"

	"anneal/gguf"
	"anneal/hf"
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
func ggufTokenizer(text GGUFText, vocab int) (list []gguf.KV, notes []string, err error) {
	tok := text.Tokenizer
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
		if b := tok.Token(s.ID); string(b) != s.Text {
			continue // an ordinary token as well, of which llama.cpp would not decode the bytes
		}
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
	special, more := ggufSpecial(text.Special, eot, before)
	notes = append(notes, more...)
	if len(before) > 1 || len(after) > 1 || len(after) == 1 && after[0] != eot {
		notes = append(notes, "the tokenizer puts more around a text than llama.cpp can: one token before it and the "+
			"end of text after it")
	}
	if n := tok.Normalizer(); n != "" {
		notes = append(notes, "llama.cpp does not convert text to "+n+", as the tokenizer does: other text gets other "+
			"tokens there")
	}
	list = []gguf.KV{
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: pre},
		{Key: "tokenizer.ggml.tokens", Value: texts}, {Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.merges", Value: merges},
		{Key: "tokenizer.ggml.add_bos_token", Value: len(before) > 0},
		{Key: "tokenizer.ggml.add_eos_token", Value: len(after) > 0},
		{Key: "tokenizer.ggml.add_space_prefix", Value: false},
	}
	return slices.Concat(list, special, ggufChatTemplates(text.ChatTemplate)), notes, nil
}

// ggufSpecial names the special tokens. llama.cpp has three fields for tokens that end a text, of which eos is the end
// of text: it also ends at those that it knows by name, such as <|im_end|>.
func ggufSpecial(is hf.Tokens, eot uint32, before []uint32) (list []gguf.KV, notes []string) {
	bos := eot
	if len(before) > 0 {
		bos = before[0]
	} else if is.BOS >= 0 {
		bos = uint32(is.BOS)
	}
	list = []gguf.KV{
		{Key: "tokenizer.ggml.bos_token_id", Value: bos}, {Key: "tokenizer.ggml.eos_token_id", Value: eot},
	}
	if is.Pad >= 0 {
		list = append(list, gguf.KV{Key: "tokenizer.ggml.padding_token_id", Value: uint32(is.Pad)})
	}
	free := []string{"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}
	for _, id := range is.EOS {
		switch {
		case id == int(eot):
		case len(free) == 0:
			notes = append(notes, fmt.Sprintf("llama.cpp has no field for token %d, which also ends a text: it ends "+
				"there only if it knows the token by its name", id))
		default:
			list = append(list, gguf.KV{Key: free[0], Value: uint32(id)})
			free = free[1:]
		}
	}
	return list, notes
}

// ggufChatTemplates returns the metadata of a chat template: a text, or a list of named ones, of which "default" is
// the one that llama.cpp takes.
func ggufChatTemplates(template any) (list []gguf.KV) {
	if text, is := template.(string); is {
		return []gguf.KV{{Key: "tokenizer.chat_template", Value: text}}
	}
	named, _ := template.([]any)
	var names []string
	for _, one := range named {
		object, _ := one.(map[string]any)
		name, _ := object["name"].(string)
		text, is := object["template"].(string)
		switch {
		case !is:
		case name == "default":
			list = append(list, gguf.KV{Key: "tokenizer.chat_template", Value: text})
		case name != "":
			names = append(names, name)
			list = append(list, gguf.KV{Key: "tokenizer.chat_template." + name, Value: text})
		}
	}
	if names != nil {
		list = append(list, gguf.KV{Key: "tokenizer.chat_templates", Value: names})
	}
	return list
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
