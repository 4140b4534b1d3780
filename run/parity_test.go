package run

import (
	"anneal/dataset"
)

// splitmix is the integer hash of the fixture.
func splitmix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// parityTokens is the fixture's data: sample s·4+b is sequence b of step s.
type parityTokens struct{ vocab, context, batch int }

func (p parityTokens) Context() int { return p.context }

func (p parityTokens) Vocab() int { return p.vocab }

func (p parityTokens) Batch(b *dataset.Batch, first uint64, rows int) error {
	n := rows * p.context
	b.Rows, b.Context = rows, p.context
	b.Tokens, b.Targets, b.DocStart = make([]uint32, n), make([]int32, n), make([]int32, n)
	for r := range rows {
		step, seq := (first+uint64(r))/uint64(p.batch), (first+uint64(r))%uint64(p.batch)
		tok := uint64(0)
		for i := range p.context + 1 {
			h := splitmix(1<<63 | step<<32 | seq<<16 | uint64(i))
			if i == 0 || (h>>32)%8 == 0 {
				tok = h % uint64(p.vocab)
			} else {
				tok = (5*tok + 7) % uint64(p.vocab)
			}
			if i < p.context {
				b.Tokens[r*p.context+i] = uint32(tok)
			}
			if i > 0 {
				b.Targets[r*p.context+i-1] = int32(tok)
			}
		}
	}
	return nil
}
