package dataset

import "math"

// Ignore is the target of a position without a loss.
const Ignore = -100

// Batch is B rows of T positions, each slice [B, T] in row-major order. The zero value is usable; Source.Batch sets
// the sizes and reuses the slices.
type Batch struct {
	Rows    int // B
	Context int // T

	Tokens  []uint32 // [B, T] inputs
	Targets []int32  // [B, T] the token that follows each input, or Ignore
	// DocStart [B, T] is the position in its row at which the document of each token begins. It never decreases along
	// a row, and is 0 for a document that began in an earlier window. A token attends to [DocStart, own position],
	// and its position within the visible part of the document is its own position minus DocStart.
	DocStart []int32
}

// Resize gives the slices the size of rows × context positions.
func (b *Batch) Resize(rows, context int) {
	b.Rows, b.Context = rows, context
	n := rows * context
	if cap(b.Tokens) < n {
		b.Tokens, b.Targets, b.DocStart = make([]uint32, n), make([]int32, n), make([]int32, n)
	}
	b.Tokens, b.Targets, b.DocStart = b.Tokens[:n], b.Targets[:n], b.DocStart[:n]
}

// setRow fills row r from the window: valid tokens of the stream, at most T+1. The rest of the row is padding: EOT
// with target Ignore.
func (b *Batch) setRow(r int, window []uint32, eot uint32) {
	at := r * b.Context
	tokens, targets, starts := b.Tokens[at:at+b.Context], b.Targets[at:at+b.Context], b.DocStart[at:at+b.Context]
	start := int32(0)
	for i := range tokens {
		t, target := eot, int32(Ignore)
		if i < len(window) {
			t = window[i]
		}
		if i+1 < len(window) {
			target = int32(window[i+1])
		}
		if t == eot {
			start = int32(i)
		}
		tokens[i], targets[i], starts[i] = t, target, start
	}
}

// setPiece fills n positions of row r from position at on with a piece of a document. window holds the tokens and the
// following one, if there is one; otherwise the last target is EOT.
func (b *Batch) setPiece(r, at, n int, window []uint32, eot uint32) {
	from := r*b.Context + at
	for i := range n {
		target := eot
		if i+1 < len(window) {
			target = window[i+1]
		}
		b.Tokens[from+i], b.Targets[from+i], b.DocStart[from+i] = window[i], int32(target), int32(at)
	}
}

// Valid returns the number of targets that are not ignored.
func (b *Batch) Valid() int {
	n := 0
	for _, t := range b.Targets {
		if t != Ignore {
			n++
		}
	}
	return n
}

// TextBytes returns the number of text bytes of the targets: the sum of byteLen[target] over targets that are not
// ignored. byteLen [V] is the length of each token in bytes, and 0 for EOT and other special tokens.
func (b *Batch) TextBytes(byteLen []int32) uint64 {
	sum := uint64(0)
	for _, t := range b.Targets {
		if t != Ignore {
			sum += uint64(byteLen[t])
		}
	}
	return sum
}

// BitsPerByte returns nats / (ln 2 · textBytes), where nats is the negative log-likelihood summed over all targets
// that are not ignored, including EOT, and textBytes the sum of TextBytes over the same batches. It does not depend
// on the tokenizer: it is the code length of the text and its document boundaries under the model, per byte of text.
func BitsPerByte(nats float64, textBytes uint64) float64 {
	return nats / (math.Ln2 * float64(textBytes))
}

// Pad fills row r from position at on with padding: EOT with target Ignore, each a document of its own, so that
// attention to it costs almost nothing.
func (b *Batch) Pad(r, at int, eot uint32) {
	for i := at; i < b.Context; i++ {
		b.Tokens[r*b.Context+i], b.Targets[r*b.Context+i], b.DocStart[r*b.Context+i] = eot, Ignore, int32(i)
	}
}

// Source yields samples. The content of sample k does not depend on the batch size.
type Source interface {
	// Batch fills b with samples first…first+rows−1. After the first call with a given b and size it does not
	// allocate. It must be called from one goroutine at a time.
	Batch(b *Batch, first uint64, rows int) error
	Context() int // T
	Vocab() int   // all tokens and targets are below it
}
