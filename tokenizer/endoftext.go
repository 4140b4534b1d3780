package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
)

// ErrNoEndOfText means that a tokenizer has no special tokens, so no token can end a text.
var ErrNoEndOfText = errors.New("has no special token that could end a text")

// endNames are the usual names of the token that ends a text. A tokenizer with exactly one of them needs no other file.
var endNames = []string{
	"<|endoftext|>", "<|end_of_text|>", "<|eod|>", "<|eos|>", "</s>", "<eos>", "[EOS]", "<｜end▁of▁sentence｜>",
}

// endOfText is the decision about which token ends a text, and its source.
type endOfText struct {
	token string // "" if not decided
	by    string // what decided it, for messages: a file; "" for a caller
	path  string // of the tokenizer, for messages; "" if it is from no file
	err   error  // error of the file that would decide it
}

// EndOfText returns the special token that ends a text, and begins the next one in a data set. It is the first of
// these that exists: the token set by [Tokenizer.SetEndOfText]; eos_token in the tokenizer_config.json, or else the
// special_tokens_map.json, beside the file that the tokenizer was read from (beside tok.json: in tok_config.json); a
// token with a usual name, such as <|endoftext|>; the only special token. Several candidates are an error; if there is
// none, the error is [ErrNoEndOfText].
func (t *Tokenizer) EndOfText() (uint32, error) {
	name := t.end.path
	if name == "" {
		name = "the tokenizer"
	}
	if t.end.err != nil {
		return 0, t.end.err
	}
	if t.end.token != "" {
		if n := t.texts.find([]byte(t.end.token)); n >= 0 {
			return t.specials[n].ID, nil
		}
		return 0, fmt.Errorf("%s: eos_token is %.100q, which is not a special token of %s\n  it has %s",
			t.end.by, t.end.token, name, t.listSpecials(t.specials))
	}
	likely := t.likelyEnds()
	switch len(likely) {
	case 0:
		return 0, fmt.Errorf("%s %w\n  train one with `anneal tokenizer train --special '<|endoftext|>'`, "+
			"or use a tokenizer that has such a token", name, ErrNoEndOfText)
	case 1:
		return likely[0].ID, nil
	}
	where := "tokenizer_config.json"
	if t.end.path != "" {
		where = configPath(t.end.path)
	}
	return 0, fmt.Errorf("%s has %s, and nothing says which of them ends a text\n"+
		"  name it with --end-of-text TOKEN, or as \"eos_token\" in %s",
		name, t.listSpecials(likely), where)
}

// SetEndOfText sets the special token that ends a text. Call it before other goroutines use the tokenizer.
func (t *Tokenizer) SetEndOfText(token string) error {
	if t.texts.find([]byte(token)) < 0 {
		return fmt.Errorf("%.100q is not a special token of the tokenizer\n  it has %s",
			token, t.listSpecials(t.specials))
	}
	t.end = endOfText{token: token, path: t.end.path}
	return nil
}

// likelyEnds returns the special tokens that may end a text, judging by the tokenizer alone.
func (t *Tokenizer) likelyEnds() []Special {
	var named []Special
	for _, s := range t.specials {
		if slices.Contains(endNames, s.Text) {
			named = append(named, s)
		}
	}
	if len(named) > 0 {
		return named
	}
	return t.specials
}

// mostListed is how many special tokens a message names; some tokenizers have hundreds.
const mostListed = 8

func (t *Tokenizer) listSpecials(list []Special) string {
	if len(list) == 0 {
		return "none"
	}
	var names []string
	for _, s := range list[:min(len(list), mostListed)] {
		names = append(names, s.Text)
	}
	if more := len(list) - mostListed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Files returns the paths of a tokenizer at path: the file itself, and the one beside it that may name the token that
// ends a text. Neither is text to learn from.
func Files(path string) []string { return []string{path, configPath(path)} }

// configPath returns the path of the file beside a tokenizer that names the token that ends a text:
// tokenizer_config.json beside tokenizer.json, and tok_config.json beside tok.json.
func configPath(path string) string {
	dir, name := filepath.Split(path)
	if name == "vocab.json" {
		name = "tokenizer.json"
	}
	return filepath.Join(dir, strings.TrimSuffix(name, ".json")+"_config.json")
}

// readEndOfText looks for the end of text in the files beside the tokenizer at path. Faults in them are reported only
// to callers who ask for the end of text.
func (t *Tokenizer) readEndOfText(path string) {
	t.end.path = path
	files := []string{configPath(path)}
	if name := filepath.Base(path); name == "tokenizer.json" || name == "vocab.json" {
		files = append(files, filepath.Join(filepath.Dir(path), "special_tokens_map.json"))
	}
	for _, file := range files {
		data, err := fileio.ReadSmall(file, maxConfig)
		if err == nil {
			t.end.token, err = eosToken(data)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.end.err = fmt.Errorf("%s, which names the token that ends a text: %w", file, fileio.Cause(err))
			return
		}
		if t.end.token != "" {
			t.end.by = file
			return
		}
	}
}

// maxConfig is the largest tokenizer_config.json that is read. With a thousand added tokens it has a few hundred
// kilobytes.
const maxConfig = 64 << 20

// eosToken reads eos_token of a tokenizer_config.json or special_tokens_map.json: a string, or an object with its
// content; "" if there is none.
func eosToken(config []byte) (string, error) {
	var c struct {
		EOS json.RawMessage `json:"eos_token"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(config, bom), &c); err != nil || isNull(c.EOS) {
		return "", err
	}
	var text string
	if json.Unmarshal(c.EOS, &text) == nil {
		return text, nil
	}
	var token struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(c.EOS, &token); err != nil || token.Content == "" {
		return "", fmt.Errorf("eos_token is %.100s, neither a text nor an object with a content", c.EOS)
	}
	return token.Content, nil
}

// writeEndOfText records the end of text beside the tokenizer at path, if a file there names another token, or if
// there is no file and the tokenizer alone does not decide it. Other contents of such a file stay.
func (t *Tokenizer) writeEndOfText(path string) error {
	id, err := t.EndOfText()
	if dir, streamed := fileio.Beside(path); err != nil || streamed != nil || dir == "" {
		return nil // nothing to record, or no path
	}
	alone := t.likelyEnds()
	config, members := configPath(path), map[string]any{}
	data, err := fileio.ReadSmall(config, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(alone) == 1 && alone[0].ID == id {
			return nil
		}
	case err != nil:
		return err
	default:
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, bom)))
		d.UseNumber()
		if err := d.Decode(&members); err != nil {
			return fmt.Errorf("%s, which must name the token that ends a text: %w", config, err)
		}
		if members == nil { // the file holds null
			members = map[string]any{}
		}
		if now, err := eosToken(data); err == nil && now == string(t.Token(id)) {
			return nil
		}
	}
	members["eos_token"] = string(t.Token(id))
	return writeJSON(config, members)
}
