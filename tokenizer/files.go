package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"
)

// Open reads a tokenizer from a path: a tokenizer.json, a .tiktoken rank file (see [ReadTiktoken]), a vocab.json with
// merges.txt beside it (see [ReadGPT2]), or a directory with a tokenizer.json, with vocab.json and merges.txt, or with
// a ranks.tiktoken. pattern and specials are for files that do not contain them; "" and nil select the defaults.
func Open(path, pattern string, specials map[string]uint32) (*Tokenizer, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		dir, names := path, []string{"tokenizer.json", "vocab.json", "ranks.tiktoken"}
		i := slices.IndexFunc(names, func(name string) bool { return exists(filepath.Join(dir, name)) })
		if i < 0 {
			return nil, fmt.Errorf("%s has no tokenizer.json, no vocab.json with merges.txt and no ranks.tiktoken", dir)
		}
		path = filepath.Join(dir, names[i])
	}
	var t *Tokenizer
	var err error
	switch {
	case filepath.Ext(path) == ".tiktoken":
		err = withFile(path, func(r io.Reader) (err error) {
			t, err = ReadTiktoken(r, pattern, specials)
			return err
		})
	case filepath.Base(path) == "vocab.json":
		t, err = openGPT2(path, pattern, specials)
	case pattern != "" || specials != nil:
		err = ErrOwnPattern
	default:
		return Load(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// ErrOwnPattern means that a pattern or special tokens were given for a file that contains them.
var ErrOwnPattern = errors.New("the file already defines a pattern and special tokens")

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func withFile(path string, read func(io.Reader) error) error {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// openGPT2 reads vocab.json, merges.txt and, if there is one, added_tokens.json.
func openGPT2(path, pattern string, specials map[string]uint32) (t *Tokenizer, err error) {
	added := filepath.Join(filepath.Dir(path), "added_tokens.json")
	if specials == nil && exists(added) {
		data, err := fileio.ReadSmall(added, maxPart)
		if err == nil {
			err = json.Unmarshal(data, &specials)
		}
		if err != nil {
			return nil, fmt.Errorf("added_tokens.json: %w", err)
		}
	}
	err = withFile(path, func(vocab io.Reader) error {
		return withFile(filepath.Join(filepath.Dir(path), "merges.txt"), func(merges io.Reader) error {
			t, err = ReadGPT2(vocab, merges, pattern, specials)
			return err
		})
	})
	if err == nil {
		t.readEndOfText(path)
	}
	return t, err
}

// ReadGPT2 reads the two files of GPT-2: vocab.json, an object of tokens in the byte-level alphabet with their ids,
// and merges.txt, with two tokens per line for each merge. The files do not contain the pattern; "" means gpt2. The
// special tokens are those given, plus all tokens of vocab.json longer than a byte that no merge produces, because
// these could never be encoded as ordinary tokens.
func ReadGPT2(vocab, merges io.Reader, pattern string, specials map[string]uint32) (*Tokenizer, error) {
	if pattern == "" {
		pattern = "gpt2"
	}
	p, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	names, err := readAll(vocab)
	if err != nil {
		return nil, err
	}
	if err := checkJSON(names); err != nil {
		return nil, err
	}
	text, err := readAll(merges)
	if err != nil {
		return nil, err
	}
	var made interner // the tokens that merges produce
	var joined []byte
	err = mergeLines(text, func(left, right []byte) error {
		joined = append(append(joined[:0], left...), right...)
		made.add(joined)
		return nil
	})
	if err != nil {
		return nil, err
	}
	added := map[string]uint32{}
	for text, id := range specials {
		added[text] = id
	}
	c := jsonCursor{data: names}
	err = c.object(func(key []byte) error {
		id, err := c.id()
		if b, ok := appendBytes(nil, key); err == nil && !(ok && len(b) == 1) && made.find(key) < 0 {
			if _, known := added[string(key)]; !known {
				added[string(key)] = id
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	tokens, ids, err := parseVocab(names, added)
	if err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	list := mergeList{vocab: tokens, ids: ids}
	if err := mergeLines(text, list.add); err != nil {
		return nil, err
	}
	var all []Special
	for text, id := range added {
		all = append(all, Special{ID: id, Text: text})
	}
	return newTokenizer(p, false, tokens, ids, list.merges, all, false)
}

// mergeLines calls add for each merge of a merges.txt.
func mergeLines(text []byte, add func(left, right []byte) error) error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			continue
		}
		left, right, err := mergeLine(line)
		if err == nil && left != nil {
			err = add(left, right)
		}
		if err != nil {
			return fmt.Errorf("merges.txt, line %d: %w", n, err)
		}
	}
	return nil
}

// SaveGPT2 writes vocab.json and merges.txt into a directory. They do not contain the pattern, the normalizer or the
// marks of special tokens. A tokenizer with tokens that its merges do not produce cannot be written.
func (t *Tokenizer) SaveGPT2(dir string) error {
	if id, ok := t.unmade(); ok {
		return fmt.Errorf("token %d, %.100q, is not what the merges produce, and vocab.json with merges.txt cannot "+
			"express that\n  try the Hugging Face format", id, t.Token(id))
	}
	for _, m := range t.merges {
		if bytes.HasPrefix(t.Token(m.left), []byte(versionMark)) {
			return fmt.Errorf("a merge begins with %.100q, which readers of merges.txt take for the line of its "+
				"version\n  try the Hugging Face format", t.Token(m.left))
		}
	}
	err := fileio.Write(filepath.Join(dir, "vocab.json"), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		b.WriteByte('{')
		t.writeTokens(b, "\n  ")
		b.WriteString("\n}\n")
		return b.Flush()
	})
	if err != nil {
		return err
	}
	return fileio.Write(filepath.Join(dir, "merges.txt"), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		b.WriteString("#version: 0.2\n")
		var line []byte
		for _, m := range t.merges {
			line = append(appendByteLevel(line[:0], t.Token(m.left)), ' ')
			line = append(appendByteLevel(line, t.Token(m.right)), '\n')
			b.Write(line)
		}
		return b.Flush()
	})
}

// unmade returns a token that its merges do not produce.
func (t *Tokenizer) unmade() (id uint32, ok bool) {
	m := merger{t: t}
	var ids []uint32
	for n, id := range t.ids {
		token := t.vocab.at(n)
		if len(token) <= shortPiece {
			ids = m.appendShort(ids[:0], token)
		} else {
			ids = m.appendLong(ids[:0], token)
		}
		if len(ids) != 1 || ids[0] != id {
			return id, true
		}
	}
	return 0, false
}

// SaveTiktoken writes a rank file: see [Tokenizer.WriteTiktoken].
func (t *Tokenizer) SaveTiktoken(path string) error { return fileio.Write(path, t.WriteTiktoken) }

// SaveHF writes tokenizer.json and the files that Hugging Face loaders expect beside it, tokenizer_config.json and
// special_tokens_map.json, into a directory. The beginning-of-text token is the first one of the post-processor, the
// end token is EOT.
func (t *Tokenizer) SaveHF(dir string) error {
	if err := t.writeHF(filepath.Join(dir, "tokenizer.json")); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, "tokenizer_config.json"), t.config()); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "special_tokens_map.json"), t.named())
}

// named returns the special tokens that have a role, by Hugging Face's names of the roles.
func (t *Tokenizer) named() map[string]string {
	named := map[string]string{}
	if len(t.before) > 0 {
		named["bos_token"] = string(t.Token(t.before[0]))
	}
	if id, err := t.EndOfText(); err == nil {
		named["eos_token"] = string(t.Token(id))
	}
	return named
}

// config is the content of a tokenizer_config.json.
func (t *Tokenizer) config() map[string]any {
	type token struct {
		Content    string `json:"content"`
		LStrip     bool   `json:"lstrip"`
		Normalized bool   `json:"normalized"`
		RStrip     bool   `json:"rstrip"`
		SingleWord bool   `json:"single_word"`
		Special    bool   `json:"special"`
	}
	added := map[uint32]token{}
	for _, s := range t.specials {
		added[s.ID] = token{s.Text, s.LStrip, s.Normalized, s.RStrip, s.SingleWord, !s.Added}
	}
	config := map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
		"added_tokens_decoder": added,
	}
	for key, text := range t.named() {
		config[key] = text
	}
	return config
}

// ConfigJSON returns the tokenizer's tokenizer_config.json, which names the token that ends a text for readers of
// tokenizer.json.
func (t *Tokenizer) ConfigJSON() []byte {
	b, err := encodeJSON(t.config())
	if err != nil {
		panic(err) // strings and bools
	}
	return b
}

func encodeJSON(content any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(content)
	return b.Bytes(), err
}

func writeJSON(path string, content any) error {
	b, err := encodeJSON(content)
	if err != nil {
		return err
	}
	return fileio.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
