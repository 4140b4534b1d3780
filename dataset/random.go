package dataset

// Random is a Source of uniformly random tokens, for benchmarks: no files, no EOT, one document per row.
type Random struct {
	vocab, context int
	seed           uint64
}

// NewRandom returns random samples of context tokens below vocab.
func NewRandom(vocab, context int, seed uint64) *Random { return &Random{vocab, context, seed} }

// Context returns T.
func (r *Random) Context() int { return r.context }

// Vocab returns the number of token ids.
func (r *Random) Vocab() int { return r.vocab }

// Batch fills b with samples first…first+rows−1.
func (r *Random) Batch(b *Batch, first uint64, rows int) error {
	b.Resize(rows, r.context)
	clear(b.DocStart)
	for i := range rows {
		key := mix(mix(r.seed) + first + uint64(i))
		token := func(j int) uint64 { return mix(key+uint64(j)) >> 32 * uint64(r.vocab) >> 32 }
		for j := range r.context {
			b.Tokens[i*r.context+j] = uint32(token(j))
			b.Targets[i*r.context+j] = int32(token(j + 1))
		}
	}
	return nil
}
