package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Around returns the tokens that the post-processor puts before and after a text, such as a beginning-of-text token.
// Encoding does not add them.
func (t *Tokenizer) Around() (before, after []uint32) {
	return slices.Clone(t.before), slices.Clone(t.after)
}

// SetAround makes the post-processor put these special tokens before and after a text. Call it before other goroutines
// use the tokenizer. The hash does not change, because the ids of a text do not change.
func (t *Tokenizer) SetAround(before, after []uint32) error {
	if slices.Equal(before, t.before) && slices.Equal(after, t.after) {
		return nil
	}
	post, err := t.template(before, after)
	if err != nil {
		return err
	}
	t.post, t.before, t.after = post, slices.Clone(before), slices.Clone(after)
	return nil
}

// template returns the post-processor that puts these tokens around a text: TemplateProcessing, or none. The
// tokenizers library also requires a template for two texts.
func (t *Tokenizer) template(before, after []uint32) (json.RawMessage, error) {
	known := map[string]hfTokens{}
	for _, id := range slices.Concat(before, after) {
		text := string(t.Token(id))
		if t.texts.find([]byte(text)) < 0 {
			return nil, fmt.Errorf("token %d is not a special token", id)
		}
		known[text] = hfTokens{ID: text, IDs: []uint32{id}, Tokens: []string{text}}
	}
	if len(known) == 0 {
		return nil, nil
	}
	single := t.pieces(before, hfSlot{ID: "A"}, after)
	post, err := encodeJSON(map[string]any{
		"type": "TemplateProcessing", "special_tokens": known,
		"single": single, "pair": slices.Concat(single, t.pieces(before, hfSlot{ID: "B", Type: 1}, after)),
	})
	return bytes.TrimSpace(post), err
}

// pieces are the parts of a template: a text between special tokens.
func (t *Tokenizer) pieces(before []uint32, text hfSlot, after []uint32) []hfPiece {
	var list []hfPiece
	add := func(ids []uint32) {
		for _, id := range ids {
			list = append(list, hfPiece{SpecialToken: &hfSlot{ID: string(t.Token(id)), Type: text.Type}})
		}
	}
	add(before)
	list = append(list, hfPiece{Sequence: &text})
	add(after)
	return list
}
