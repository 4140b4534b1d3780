package run

import (
	"fmt"

	"anneal/tensor"
	"anneal/tokenizer"
)

// A vocabulary change converts the rows of an embedding, or of a head, to another vocabulary:
//
//	token of both vocabularies      its row, found by its bytes, or its text if it is a special token
//	new token                       mean of the rows of the tokens into which the old tokenizer splits its bytes
//	new special token, padding      mean of the rows of all tokens of the old vocabulary
//
// The mean of the pieces is fast vocabulary transfer (Gee et al. 2022, arXiv 2402.09977). The mean of all rows limits
// the probability that a new token takes from the others (Hewitt 2021, "Initializing new word embeddings for
// pretrained language models"); transformers uses it too, with a little noise. Nothing is random, so the seed does not
// matter. Sums are in float64, in the order of the text and of the ids. The end-of-text tokens of both vocabularies
// count as the same token, whatever their text.
type vocabulary struct {
	rows [][]uint32 // for each new row, the old rows to average; nil if no row changes
	mean []uint32   // the rows of all old tokens, for rows without old ones

	before, tokens         int // tokens of the old and the new tokenizer
	carried, pieces, means int // new tokens by origin of their row: kept, from pieces, from the mean
	left                   int // old tokens that no longer exist
	padding                int // rows beyond the new tokens
	width, was             int // number of rows, now and before
}

// newVocabulary plans how the was rows of a vocabulary, in the ids of old, become width rows in the ids of now.
func newVocabulary(old, now *tokenizer.Tokenizer, was, width int) *vocabulary {
	v := &vocabulary{width: width, was: was, before: count(old), tokens: count(now)}
	if old.Hash() == now.Hash() && was == width {
		return v
	}
	oldEOT, unended := old.EndOfText()
	nowEOT, unending := now.EndOfText()
	special := map[uint32]bool{}
	for _, s := range now.Specials() {
		special[s.ID] = true
	}
	encoder := old.NewEncoder()
	kept := map[uint32]bool{}
	v.rows = make([][]uint32, width)
	for i := range v.rows {
		id := uint32(i)
		token := now.Token(id)
		if token == nil {
			v.padding++
			if i < was && old.Token(id) == nil {
				v.rows[i] = []uint32{id}
			}
			continue
		}
		from, has := old.ID(string(token))
		if !has && unending == nil && unended == nil && id == nowEOT {
			from, has = oldEOT, true
		}
		switch {
		case has:
			v.rows[i], kept[from] = []uint32{from}, true
			v.carried++
		case special[id]:
			v.means++
		default:
			v.rows[i] = encoder.Encode(nil, token)
			v.pieces++
		}
	}
	if v.identical() {
		v.rows = nil
		return v
	}
	v.left = v.before - len(kept)
	for id := range uint32(old.VocabSize()) {
		if old.Token(id) != nil {
			v.mean = append(v.mean, id)
		}
	}
	return v
}

// identical reports whether no row changes.
func (v *vocabulary) identical() bool {
	for i, from := range v.rows {
		if len(from) != 1 || from[0] != uint32(i) {
			return false
		}
	}
	return v.width == v.was
}

// count returns the number of tokens, without unused ids.
func count(t *tokenizer.Tokenizer) (n int) {
	for id := range uint32(t.VocabSize()) {
		if t.Token(id) != nil {
			n++
		}
	}
	return n
}

// String describes the change; "" if there is none.
func (v *vocabulary) String() string {
	if v.rows == nil {
		return ""
	}
	text := fmt.Sprintf("the vocabulary keeps its %d rows", v.was)
	switch {
	case v.width > v.was:
		text = fmt.Sprintf("the vocabulary grows from %d to %d rows", v.was, v.width)
	case v.width < v.was:
		text = fmt.Sprintf("the vocabulary shrinks from %d to %d rows", v.was, v.width)
	}
	text += fmt.Sprintf(": %d tokens keep their rows", v.carried)
	for _, part := range []struct {
		n    int
		text string
	}{
		{v.pieces, "%d new ones start as the mean of the tokens that spelled them before"},
		{v.means, "%d new special ones as the mean of all"},
		{v.left, "%d tokens are dropped"},
		{v.padding, "%d rows are padding"},
	} {
		if part.n > 0 {
			text += ", " + fmt.Sprintf(part.text, part.n)
		}
	}
	return text
}

// fill computes each row of dst [width, D] from those of src [was, D].
func (v *vocabulary) fill(dst, src *tensor.Tensor) {
	cols := src.Dim(1)
	mean := make([]float64, cols)
	meanOfRows(mean, src, v.mean)
	row := make([]float64, cols)
	for i, from := range v.rows {
		x := mean
		if len(from) > 0 {
			meanOfRows(row, src, from)
			x = row
		}
		for j, e := range x {
			dst.SetFloat64(i*cols+j, e)
		}
	}
}

// meanOfRows sets out to the mean of some rows of x.
func meanOfRows(out []float64, x *tensor.Tensor, rows []uint32) {
	for j := range out {
		sum := 0.0
		for _, r := range rows {
			sum += x.Float64(int(r)*len(out) + j)
		}
		out[j] = sum / float64(len(rows))
	}
}
