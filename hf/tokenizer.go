package hf

import (
	"encoding/json"
	"errors"
	"fmt"
)

// specialTokens finds the texts of special tokens in a tokenizer.json, and returns them under their keys in
// special_tokens_map.json. It refuses a tokenizer with more tokens than the model's vocabulary.
func specialTokens(ids Tokens, vocab int, text []byte) (map[string]string, error) {
	var tok struct {
		AddedTokens []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(text, &tok); err != nil {
		return nil, err
	}
	if len(tok.Model.Vocab) == 0 {
		return nil, errors.New("it has no vocabulary")
	}
	check := func(token string, id int) error {
		if id < 0 || id >= vocab {
			return fmt.Errorf("token %q has id %d, the model's vocabulary has %d", token, id, vocab)
		}
		return nil
	}
	for token, id := range tok.Model.Vocab {
		if err := check(token, id); err != nil {
			return nil, err
		}
	}
	added := map[int]string{}
	for _, t := range tok.AddedTokens {
		if err := check(t.Content, t.ID); err != nil {
			return nil, err
		}
		added[t.ID] = t.Content
	}
	special := map[string]string{}
	want := map[string]int{"bos_token": ids.BOS, "pad_token": ids.Pad, "eos_token": -1}
	if len(ids.EOS) > 0 {
		want["eos_token"] = ids.EOS[0]
	}
	for key, id := range want {
		if id < 0 {
			continue
		}
		content, ok := added[id]
		if !ok {
			return nil, fmt.Errorf("the model's %s has id %d, which is not among the added tokens", key, id)
		}
		special[key] = content
	}
	return special, nil
}
