package model

import (
	"math/bits"

	"anneal/nn"
)

// Bigram embeddings add to each token's embedding a row for the pair of the token before it and itself (modded-nanogpt,
// Jordan et al. 2024; hashed n-grams: Clark et al. 2022, arXiv 2103.06874):
//
//	x = embed[token] + bigram[hash(token before, token) mod B]
//
// so that layers need not learn what a pair of tokens says. Pairs with the same hash share a row. Rows start at 0, so
// the model starts as it would without them. The first token of a document has no row. The optimizer and muP treat the
// table like the embedding. Memory: B·D parameters with their gradient and optimizer state; 4 bytes per token. It
// costs no FLOPs, but every step updates all rows. Default: off (model.bigram: 0).
type bigram struct {
	table *nn.Param // [B, D]
	row   func(before, id int32) int32
}

// bigrams creates the table, or returns nil.
func (b *builder) bigrams() *bigram {
	rows := b.config.Bigram
	if rows == 0 {
		return nil
	}
	p := b.add("bigram", nn.Embedding, nn.Growth{In: 1, Out: b.width, Depth: 1}, rows, b.config.Dim)
	return &bigram{p, func(before, id int32) int32 { return bigramRow(before, id, rows) }}
}

// bigramRow returns the row of a pair of tokens. Multiplication by an odd number is the hash of Knuth (The Art of
// Computer Programming, volume 3, §6.4): its high bits depend on all bits of the pair.
func bigramRow(before, id int32, rows int) int32 {
	pair := uint64(uint32(before))<<32 | uint64(uint32(id))
	pair = (pair ^ pair>>29) * 0x9E3779B97F4A7C15
	pair = (pair ^ pair>>32) * 0x9E3779B97F4A7C15
	row, _ := bits.Mul64(pair, uint64(rows))
	return int32(row)
}

// atEntry reports whether the start of the model, before the first block, reads a parameter.
func (m *Decoder) atEntry(p *nn.Param) bool {
	return p == m.embed || p == m.positions || p == m.smear || m.bigram != nil && p == m.bigram.table
}
