package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"
)

// Tokenizer is a byte-level BPE vocabulary with its merges, its pre-tokenizer pattern and its special tokens. It does
// not change once made and may be shared by goroutines.
type Tokenizer struct {
	pattern      pattern
	ignoreMerges bool // a pretoken that is a token is that token, whatever the merges say

	tokens   [][]byte // by id; nil: no such token. For special tokens, their text
	index    interner // ordinary tokens, numbered as in ordinary
	ordinary []uint32 // id of each string of index
	byteID   [256]uint32
	merges   []merge // by rank
	ranks    rankTable
	specials []Special     // by id
	openers  [256][]uint32 // the special tokens that start with a byte, as indexes of specials

	post json.RawMessage // post_processor of the file it was read from; kept for the way back

	hash     func() string
	encoders sync.Pool
}

// merge replaces the tokens left, right, side by side, by id.
type merge struct{ left, right, id uint32 }

// Special is a token that stands for no text of its own, such as <|endoftext|>. Encoding yields it only where it is
// allowed: see [Tokenizer.EncodeSpecial].
type Special struct {
	ID   uint32
	Text string
	// Added marks a token that was added to the vocabulary but is not "special" in the file it came from. It is
	// treated like the others here; the mark is kept when the tokenizer is saved.
	Added bool
}

// maxVocab bounds ids, so that memory stays in proportion to what a file holds.
const maxVocab = 1 << 24

// newTokenizer builds the look-up tables. tokens holds the bytes of ordinary tokens by id, nil where there is none.
func newTokenizer(p pattern, tokens [][]byte, merges []merge, specials []Special, ignoreMerges bool) (*Tokenizer, error) {
	t := &Tokenizer{pattern: p, tokens: tokens, merges: merges, specials: specials, ignoreMerges: ignoreMerges}
	for id, token := range tokens {
		if token == nil {
			continue
		}
		if len(token) == 0 {
			return nil, fmt.Errorf("token %d is empty", id)
		}
		if i := t.index.add(token); i < len(t.ordinary) {
			return nil, fmt.Errorf("tokens %d and %d are both %.100q", t.ordinary[i], id, token)
		}
		t.ordinary = append(t.ordinary, uint32(id))
	}
	for b := range 256 {
		i := t.index.find([]byte{byte(b)})
		if i < 0 {
			return nil, fmt.Errorf("no token for the byte 0x%02x: some texts could not be encoded", b)
		}
		t.byteID[b] = t.ordinary[i]
	}
	if err := t.addSpecials(); err != nil {
		return nil, err
	}
	t.ranks.build(merges, &t.byteID)
	t.hash = sync.OnceValue(t.computeHash)
	t.encoders.New = func() any { return t.NewEncoder() }
	return t, nil
}

func (t *Tokenizer) addSpecials() error {
	slices.SortFunc(t.specials, func(a, b Special) int { return int(a.ID) - int(b.ID) })
	texts := make(map[string]uint32, len(t.specials))
	for i, s := range t.specials {
		switch {
		case s.Text == "":
			return fmt.Errorf("special token %d is empty", s.ID)
		case s.ID >= maxVocab:
			return fmt.Errorf("special token %.100q: id %d is not below %d", s.Text, s.ID, maxVocab)
		}
		if id, dup := texts[s.Text]; dup {
			return fmt.Errorf("special tokens %d and %d are both %.100q", id, s.ID, s.Text)
		}
		texts[s.Text] = s.ID
		// In a file both are keys of one vocabulary, the ordinary token in the byte-level alphabet.
		if b, ok := appendBytes(nil, []byte(s.Text)); ok {
			if i := t.index.find(b); i >= 0 {
				return fmt.Errorf("special token %.100q is written like the ordinary token %d", s.Text, t.ordinary[i])
			}
		}
		for int(s.ID) >= len(t.tokens) {
			if int(s.ID) > 2*len(t.tokens)+1024 {
				return fmt.Errorf("special token %.100q: id %d is far beyond the vocabulary of %d", s.Text, s.ID, len(t.tokens))
			}
			t.tokens = append(t.tokens, make([][]byte, int(s.ID)+1-len(t.tokens))...)
		}
		if t.tokens[s.ID] != nil {
			return fmt.Errorf("special token %.100q has the id %d of the token %.100q", s.Text, s.ID, t.tokens[s.ID])
		}
		t.tokens[s.ID] = []byte(s.Text)
		t.openers[s.Text[0]] = append(t.openers[s.Text[0]], uint32(i))
	}
	return nil
}

// VocabSize is the largest id plus one: the rows that an embedding needs.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// ID returns the id of the token with exactly these bytes (as in " the"), or of the special token with this text.
func (t *Tokenizer) ID(token string) (uint32, bool) {
	for _, s := range t.specials {
		if s.Text == token {
			return s.ID, true
		}
	}
	if i := t.index.find([]byte(token)); i >= 0 {
		return t.ordinary[i], true
	}
	return 0, false
}

// Token returns the bytes of the token id, or the text of a special token; nil if there is none. The caller must not
// change them.
func (t *Tokenizer) Token(id uint32) []byte {
	if int64(id) >= int64(len(t.tokens)) {
		return nil
	}
	return t.tokens[id]
}

// Specials returns the special tokens by id.
func (t *Tokenizer) Specials() []Special { return slices.Clone(t.specials) }

// EOT returns the special token that ends a document: the first there is of <|endoftext|>, <|end_of_text|>, </s>, <eos>.
func (t *Tokenizer) EOT() (uint32, bool) {
	for _, name := range []string{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"} {
		for _, s := range t.specials {
			if s.Text == name {
				return s.ID, true
			}
		}
	}
	return 0, false
}

// Pattern is the name of the pre-tokenizer pattern (gpt2, cl100k, llama3), or the regular expression.
func (t *Tokenizer) Pattern() string { return t.pattern.String() }

// Hash identifies the mapping from text to ids: SHA-256, in hex, of pattern, tokens, merges and special tokens. It does
// not depend on the file format, and stays the same when the tokenizer is saved and loaded.
func (t *Tokenizer) Hash() string { return t.hash() }

func (t *Tokenizer) computeHash() string {
	h := sha256.New()
	io.WriteString(h, "byte-level bpe 1\n")
	hashBytes(h, []byte(t.pattern.regex))
	hashInts(h, uint64(len(t.tokens)), uint64(len(t.merges)), uint64(len(t.specials)))
	if t.ignoreMerges {
		hashInts(h, 1)
	}
	for _, token := range t.tokens {
		hashBytes(h, token)
	}
	for _, m := range t.merges {
		hashInts(h, uint64(m.left), uint64(m.right), uint64(m.id))
	}
	for _, s := range t.specials {
		hashInts(h, uint64(s.ID))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashBytes(h hash.Hash, b []byte) {
	hashInts(h, uint64(len(b)))
	h.Write(b)
}

func hashInts(h hash.Hash, xs ...uint64) {
	var b [8]byte
	for _, x := range xs {
		binary.LittleEndian.PutUint64(b[:], x)
		h.Write(b[:])
	}
}
