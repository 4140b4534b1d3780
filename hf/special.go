package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"anneal/internal/fileio"
)

// SpecialTokens returns the special tokens of a model directory with config c: those of the config, and the ends of a
// text that only generation_config.json names.
func SpecialTokens(dir string, c Config) (Tokens, error) {
	t := c.tokens()
	f := &fields{}
	if err := readJSON(filepath.Join(dir, "generation_config.json"), &f.raw); err != nil {
		return t, err
	}
	t.EOS = append(t.EOS[:len(t.EOS):len(t.EOS)], f.tokens(Tokens{}).EOS...)
	return t, errors.Join(f.errs...)
}

// ChatTemplate returns the chat template of a model directory, as tokenizer_config.json has it: a text, or a list of
// named ones; nil if there is none. New versions of transformers write it to chat_template.jinja.
func ChatTemplate(dir string) (any, error) {
	text, err := readText(filepath.Join(dir, "chat_template.jinja"), maxConfig)
	if err == nil {
		return string(text), nil
	}
	var c struct {
		ChatTemplate any `json:"chat_template"`
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = readJSON(filepath.Join(dir, "tokenizer_config.json"), &c)
	}
	return c.ChatTemplate, err
}

// maxTokenizerConfig is the largest tokenizer_config.json that is read. With a thousand added tokens it has a few
// hundred kilobytes.
const maxTokenizerConfig = 64 << 20

// readJSON reads a JSON file into dst. A file that does not exist is an empty object.
func readJSON(path string, dst any) error {
	text, err := readText(path, maxTokenizerConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, dst)
	}
	if err != nil {
		return fmt.Errorf("hf: %s: %w", path, fileio.Cause(err))
	}
	return nil
}

// readText reads a text file without a byte order mark, with which some editors begin it.
func readText(path string, limit int64) ([]byte, error) {
	text, err := fileio.ReadSmall(path, limit)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}
