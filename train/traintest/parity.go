package traintest

import "anneal/dataset"

// Splitmix is the integer hash by which the fixtures define weights and tokens.
func Splitmix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// Tokens are the data of the fixtures, of sequences of Length tokens below VocabSize: sample s·BatchSize+b is
// sequence b of step s.
type Tokens struct{ VocabSize, Length, BatchSize int }

// Context returns the length of a sequence.
func (p Tokens) Context() int { return p.Length }

// Vocab returns the number of tokens.
func (p Tokens) Vocab() int { return p.VocabSize }

// Batch fills b with rows sequences from number first on.
func (p Tokens) Batch(b *dataset.Batch, first uint64, rows int) error {
	n := rows * p.Length
	b.Rows, b.Context = rows, p.Length
	b.Tokens, b.Targets, b.DocStart = make([]uint32, n), make([]int32, n), make([]int32, n)
	for r := range rows {
		step, seq := (first+uint64(r))/uint64(p.BatchSize), (first+uint64(r))%uint64(p.BatchSize)
		tok := uint64(0)
		for i := range p.Length + 1 {
			h := Splitmix(1<<63 | step<<32 | seq<<16 | uint64(i))
			if i == 0 || (h>>32)%8 == 0 {
				tok = h % uint64(p.VocabSize)
			} else {
				tok = (5*tok + 7) % uint64(p.VocabSize)
			}
			if i < p.Length {
				b.Tokens[r*p.Length+i] = uint32(tok)
			}
			if i > 0 {
				b.Targets[r*p.Length+i-1] = int32(tok)
			}
		}
	}
	return nil
}
