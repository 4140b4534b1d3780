package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"anneal/internal/fileio"
)

const (
	// MaxFile is the largest tokenizer file that is read, in bytes. The largest in use are about 40 MB.
	MaxFile   = 128 << 20
	maxPart   = 1 << 20 // largest part of a file besides tokens and merges, in bytes
	mostAdded = 1 << 16 // added tokens
)

// Load reads a Hugging Face tokenizer.json. See [Read]. Files beside it name the token that ends a text: see
// [Tokenizer.EndOfText].
func Load(path string) (*Tokenizer, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.readEndOfText(path)
	return t, nil
}

// bom is the byte order mark with which some editors begin a file.
var bom = []byte("\ufeff")

// Read reads a Hugging Face tokenizer.json with a byte-level BPE model: merges as pairs or as "a b", with
// ignore_merges or without; pre-tokenizer ByteLevel, or a Sequence of Splits (behaviour Isolated) and Digits before
// it; no normalizer or NFC; added tokens with all their marks. If the file asks for anything that this package does
// not support (other normalizers, prefix spaces, dropout, truncation, …), Read does not ignore it but returns an error
// that names the field. A post-processor is kept; [Tokenizer.Around] returns the tokens that it puts around a text.
func Read(r io.Reader) (*Tokenizer, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, bom)
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	f := hfFile{}
	c := jsonCursor{data: data}
	if err := c.object(func(key []byte) error { return f.field(string(key), &c) }); err != nil {
		return nil, err
	}
	return f.tokenizer()
}

// readAll reads a tokenizer file, up to MaxFile. Files are read in one piece, without the garbage of growing buffers.
func readAll(r io.Reader) ([]byte, error) {
	var buf bytes.Buffer
	if f, ok := r.(*os.File); ok {
		info, err := f.Stat()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case info.Size() > MaxFile:
			return nil, fileio.TooLargeError(MaxFile)
		default:
			buf.Grow(int(info.Size()) + bytes.MinRead)
		}
	}
	n, err := buf.ReadFrom(io.LimitReader(r, MaxFile+1))
	if err == nil && n > MaxFile {
		err = fileio.TooLargeError(MaxFile)
	}
	return buf.Bytes(), err
}

// hfFile collects the parts of a tokenizer.json. Parts that depend on others stay JSON until all have been read.
type hfFile struct {
	pre, post     []byte
	nfc           bool
	vocab, merges []byte
	added         []hfAdded
	ignoreMerges  bool
}

// hfAdded is an entry of added_tokens.
type hfAdded struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// field takes one member of the top level.
func (f *hfFile) field(key string, c *jsonCursor) error {
	switch key {
	case "added_tokens":
		err := c.array(func(i int) error {
			if i == mostAdded {
				return fmt.Errorf("added_tokens: more than %d", mostAdded)
			}
			var a hfAdded
			if err := strict(c.value(), &a); err != nil {
				return fmt.Errorf("added_tokens[%d]: %w", i, err)
			}
			f.added = append(f.added, a)
			return nil
		})
		return err
	case "model":
		return f.model(c)
	}
	v := c.value()
	if len(v) > maxPart {
		return fmt.Errorf("%.100s: %w", key, fileio.TooLargeError(maxPart))
	}
	switch key {
	case "version":
	case "pre_tokenizer":
		f.pre = v
	case "post_processor":
		f.post = v
	case "decoder":
		return checkDecoder(v)
	case "normalizer":
		var err error
		f.nfc, err = parseNormalizer(v)
		return err
	case "truncation", "padding":
		if !isNull(v) {
			return fmt.Errorf("%s: is set; texts are encoded whole\n  try the file with %q: null", key, key)
		}
	default:
		return fmt.Errorf("%.100s: unknown field", key)
	}
	return nil
}

// model takes the model, which must be BPE.
func (f *hfFile) model(c *jsonCursor) error {
	return c.object(func(key []byte) error {
		v := c.value()
		ok := true
		switch string(key) {
		case "type":
			ok = string(v) == `"BPE"`
		case "vocab":
			f.vocab = v
		case "merges":
			f.merges = v
		case "ignore_merges":
			ok = json.Unmarshal(v, &f.ignoreMerges) == nil
		case "dropout":
			ok = isNull(v) || string(v) == "0.0" || string(v) == "0"
		case "continuing_subword_prefix", "end_of_word_suffix":
			ok = isNull(v) || string(v) == `""`
		case "unk_token", "fuse_unk", "byte_fallback": // about text that no token represents, which cannot occur
		default:
			return fmt.Errorf("model.%.100s: unknown field", key)
		}
		if !ok {
			return fmt.Errorf("model.%s: %.100s is not supported, only byte-level BPE without dropout, "+
				"prefix and suffix", key, v)
		}
		return nil
	})
}

// tokenizer puts the parts together.
func (f *hfFile) tokenizer() (*Tokenizer, error) {
	if f.vocab == nil || f.merges == nil {
		return nil, errors.New("model: vocab or merges are missing")
	}
	p, err := parsePreTokenizer(f.pre)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	specials := make([]Special, len(f.added))
	addedID, added := make(map[string]uint32, len(f.added)), make(map[string]Special, len(f.added))
	for i, a := range f.added {
		specials[i] = Special{
			ID: a.ID, Text: a.Content, Added: !a.Special,
			LStrip: a.LStrip, RStrip: a.RStrip, SingleWord: a.SingleWord, Normalized: a.Normalized,
		}
		addedID[a.Content], added[a.Content] = a.ID, specials[i]
	}
	vocab, ids, err := parseVocab(f.vocab, addedID)
	if err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	list := mergeList{vocab: vocab, ids: ids, added: added}
	if err := list.parse(f.merges); err != nil {
		return nil, err
	}
	t, err := newTokenizer(p, f.nfc, vocab, list.ids, list.merges, specials, f.ignoreMerges)
	if err != nil {
		return nil, err
	}
	t.post = bytes.Clone(f.post)
	t.before, t.after, err = parsePost(f.post, t, true)
	return t, err
}

// parseVocab reads the ordinary tokens; special ones, which are keys too, must have the id they were added with.
func parseVocab(data []byte, addedID map[string]uint32) (*interner, []uint32, error) {
	vocab := &interner{}
	var ids []uint32
	var token []byte
	c := jsonCursor{data: data}
	err := c.object(func(key []byte) error {
		id, err := c.id()
		if err != nil {
			return fmt.Errorf("%.100q: %w", key, err)
		}
		if want, ok := addedID[string(key)]; ok {
			if id != want {
				return fmt.Errorf("%.100q: id %d, but %d in added_tokens", key, id, want)
			}
			return nil
		}
		var ok bool
		if token, ok = appendBytes(token[:0], key); !ok || len(token) == 0 {
			return fmt.Errorf("%.100q: not a token in the byte-level alphabet", key)
		}
		if vocab.add(token) < len(ids) {
			return fmt.Errorf("%.100q: occurs twice", key)
		}
		ids = append(ids, id)
		return nil
	})
	return vocab, ids, err
}

// strict decodes v and refuses unknown fields.
func strict(v []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(v))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func isNull(v []byte) bool { return len(v) == 0 || string(v) == "null" }
