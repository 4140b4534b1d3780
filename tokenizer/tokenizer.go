package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"
)

// Tokenizer is a byte-level BPE vocabulary with its merges, its pre-tokenizer pattern and its special tokens. It is
// immutable and may be shared by goroutines.
type Tokenizer struct {
	pattern      pattern
	nfc          bool // text is first converted to Unicode normalization form C
	ignoreMerges bool // a pretoken that is a token is encoded as that token, whatever the merges

	vocab    *interner // the ordinary tokens, numbered in any order
	ids      []uint32  // by that number
	byID     []tokenRef
	byteID   [256]uint32
	merges   []merge // by rank
	ranks    rankTable
	specials []Special // by id
	texts    interner  // of the special tokens, numbered as in specials
	marked   matchers  // of all special tokens
	added    matchers  // of those with Added

	post          json.RawMessage // post_processor of the file it was read from; kept for the way back
	before, after []uint32        // what it puts around a text
	end           endOfText

	hash     func() string
	encoders sync.Pool
}

// merge replaces the adjacent tokens left, right by id.
type merge struct{ left, right, id uint32 }

// tokenRef identifies the token of an id: 0 none, n > 0 the ordinary token n-1, n < 0 the special token -n-1.
type tokenRef int32

// Special is a token beside the ordinary ones: one without text of its own, such as <|endoftext|>, which encoding
// yields only where it is allowed (see [Encoder.EncodeSpecial]), or one with Added.
type Special struct {
	ID   uint32
	Text string
	// Added marks a token that was added to the vocabulary but is not "special" in its source file, such as Qwen's
	// <think> or GPT-NeoX's runs of spaces. It stands for its text: encoding finds it in any text. It may be an
	// ordinary token as well, which merges form and whose bytes are decoded. Its text is then the form in files.
	Added bool

	// How encoding matches it, as in Hugging Face files.
	LStrip     bool // includes the white space before it
	RStrip     bool // includes the white space after it
	SingleWord bool // no match next to a word character
	Normalized bool // matched after those without this mark, in normalized text
}

// maxVocab limits ids.
const maxVocab = 1 << 24

// newTokenizer builds the lookup tables. vocab holds the ordinary tokens and ids their ids.
func newTokenizer(p pattern, nfc bool, vocab *interner, ids []uint32, merges []merge, specials []Special,
	ignoreMerges bool) (*Tokenizer, error) {
	t := &Tokenizer{
		pattern: p, nfc: nfc, vocab: vocab, ids: ids, merges: merges, specials: specials, ignoreMerges: ignoreMerges,
	}
	slices.SortFunc(t.specials, func(a, b Special) int { return int(a.ID) - int(b.ID) })
	if err := t.numberTokens(); err != nil {
		return nil, err
	}
	for b := range 256 {
		n := vocab.find([]byte{byte(b)})
		if n < 0 {
			return nil, fmt.Errorf("no token for the byte 0x%02x: some texts cannot be encoded", b)
		}
		t.byteID[b] = ids[n]
	}
	if err := t.indexSpecials(); err != nil {
		return nil, err
	}
	t.ranks.build(merges, &t.byteID)
	t.hash = sync.OnceValue(t.computeHash)
	t.encoders.New = func() any { return t.NewEncoder() }
	return t, nil
}

// numberTokens fills byID. Ids must be unique, and not far beyond the number of tokens, so that memory is
// proportional to the size of a file.
func (t *Tokenizer) numberTokens() error {
	count := len(t.ids) + len(t.specials)
	limit := min(maxVocab, 2*count+1024)
	top := 0
	for _, id := range t.ids {
		top = max(top, int(id)+1)
	}
	for _, s := range t.specials {
		top = max(top, int(s.ID)+1)
	}
	if top > limit {
		return fmt.Errorf("the largest id is %d, but there are only %d tokens", top-1, count)
	}
	t.byID = make([]tokenRef, top)
	set := func(id uint32, ref tokenRef, token []byte) error {
		if t.byID[id] != 0 {
			return fmt.Errorf("token %.100q has the id %d of another token", token, id)
		}
		t.byID[id] = ref
		return nil
	}
	for n, id := range t.ids {
		if err := set(id, tokenRef(n+1), t.vocab.at(n)); err != nil {
			return err
		}
	}
	for i, s := range t.specials {
		if s.Added && t.ByteLevel(s.ID) == s.Text {
			continue // an ordinary token as well
		}
		if err := set(s.ID, tokenRef(-i-1), []byte(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

// indexSpecials fills texts and the matchers.
func (t *Tokenizer) indexSpecials() error {
	for i, s := range t.specials {
		if s.Text == "" || !utf8.ValidString(s.Text) {
			return fmt.Errorf("special token %d is %.100q: it must be non-empty UTF-8 text", s.ID, s.Text)
		}
		// In a file, special and ordinary tokens are keys of one vocabulary, the ordinary ones in the byte-level
		// alphabet.
		if b, ok := appendBytes(nil, []byte(s.Text)); ok {
			if n := t.vocab.find(b); n >= 0 && (!s.Added || t.ids[n] != s.ID) {
				return fmt.Errorf("special token %.100q has the same text as the ordinary token %d", s.Text, t.ids[n])
			}
		}
		if n := t.texts.add([]byte(s.Text)); n < i {
			return fmt.Errorf("special tokens %d and %d are both %.100q", t.specials[n].ID, s.ID, s.Text)
		}
		normal := t.normalize(nil, []byte(s.Text))
		t.marked.add(&s, normal, i)
		if s.Added {
			t.added.add(&s, normal, i)
		}
	}
	return nil
}

// VocabSize returns the largest id plus one: the number of rows of an embedding.
func (t *Tokenizer) VocabSize() int { return len(t.byID) }

// ID returns the id of the token with exactly these bytes (as in " the"), or of the special token with this text.
func (t *Tokenizer) ID(token string) (uint32, bool) {
	if n := t.texts.find([]byte(token)); n >= 0 {
		return t.specials[n].ID, true
	}
	if n := t.vocab.find([]byte(token)); n >= 0 {
		return t.ids[n], true
	}
	return 0, false
}

// Token returns the bytes of the token id, or the text of a special token; nil if there is none. The caller must not
// modify them.
func (t *Tokenizer) Token(id uint32) []byte {
	if int64(id) >= int64(len(t.byID)) {
		return nil
	}
	switch ref := t.byID[id]; {
	case ref > 0:
		return t.vocab.at(int(ref - 1))
	case ref < 0:
		return t.texts.at(int(-ref - 1))
	}
	return nil
}

// Specials returns the special tokens by id.
func (t *Tokenizer) Specials() []Special { return slices.Clone(t.specials) }

// Pattern returns the name of the pre-tokenizer pattern (gpt2, cl100k, llama3, qwen2, nanochat, o200k), or the
// regular expression.
func (t *Tokenizer) Pattern() string { return t.pattern.String() }

// Normalizer returns "NFC" if text is converted to that Unicode normalization form before encoding, so that decoding
// returns the normalized text; else "".
func (t *Tokenizer) Normalizer() string {
	if t.nfc {
		return "NFC"
	}
	return ""
}

// Merges yields the ids of the two tokens that each merge joins, the first merges first.
func (t *Tokenizer) Merges() iter.Seq2[uint32, uint32] {
	return func(yield func(left, right uint32) bool) {
		for _, m := range t.merges {
			if !yield(m.left, m.right) {
				return
			}
		}
	}
}

// IgnoresMerges reports whether a pretoken that is a token is encoded as that token, whatever the merges.
func (t *Tokenizer) IgnoresMerges() bool { return t.ignoreMerges }

// Hash identifies the mapping from text to ids: SHA-256, in hex, of pattern, normalizer, tokens, merges and special
// tokens. It does not depend on the file format, and does not change when the tokenizer is saved and loaded.
func (t *Tokenizer) Hash() string { return t.hash() }

func (t *Tokenizer) computeHash() string {
	h := sha256.New()
	io.WriteString(h, "byte-level bpe 1\n")
	hashBytes(h, []byte(t.pattern.regex))
	ignore := uint64(0)
	if t.ignoreMerges {
		ignore = 1
	}
	hashInts(h, ignore, uint64(len(t.byID)), uint64(len(t.merges)), uint64(len(t.specials)))
	for id := range t.byID {
		hashBytes(h, t.Token(uint32(id)))
	}
	for _, m := range t.merges {
		hashInts(h, uint64(m.left), uint64(m.right), uint64(m.id))
	}
	for _, s := range t.specials {
		hashInts(h, uint64(s.ID))
	}
	if t.nfc {
		io.WriteString(h, "nfc")
	}
	for _, s := range t.specials {
		if s.LStrip || s.RStrip || s.SingleWord || s.Normalized {
			fmt.Fprintf(h, "%d %v %v %v %v", s.ID, s.LStrip, s.RStrip, s.SingleWord, s.Normalized)
		}
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
