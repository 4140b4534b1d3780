package autograd

// Zigzag describes how rows of tokens are cut among the ranks of context parallelism: into 2C chunks for C ranks; rank
// c has chunks c and 2C−1−c. A token attends to earlier tokens, so late chunks cost more than early ones, but the
// first and the last chunk together cost the same as the second and the last but one (Llama 3, Dubey et al. 2024,
// arXiv 2407.21783).
//
//	C = 2   [0 | 1 | 2 | 3]   rank 0 has 0 and 3, rank 1 has 1 and 2
//
// The tokens of a rank are those of its two chunks of the first row, then of the second row, and so on: rows of T/C.
type Zigzag struct {
	Rank, Ranks int
	Len         int // T, tokens of a whole row: a multiple of 2·Ranks
}

// Chunk returns the number of tokens of a chunk.
func (z Zigzag) Chunk() int { return z.Len / (2 * z.Ranks) }

// Chunks returns the numbers of this rank's chunks, in order.
func (z Zigzag) Chunks() [2]int { return z.of(z.Rank) }

// of returns the chunks of any rank.
func (z Zigzag) of(rank int) [2]int { return [2]int{rank, 2*z.Ranks - 1 - rank} }

// Token returns the number, in a micro-batch of whole rows, of this rank's token i.
func (z Zigzag) Token(i int) int {
	own := z.Len / z.Ranks // of a row
	at := i % own
	return i/own*z.Len + z.Chunks()[at/z.Chunk()]*z.Chunk() + at%z.Chunk()
}

// Runs returns this rank's tokens of a micro-batch of whole rows, in this rank's order.
func (z Zigzag) Runs(rows int) (list []Run) {
	for row := range rows {
		for _, chunk := range z.Chunks() {
			list = append(list, Run{First: row*z.Len + chunk*z.Chunk(), Count: z.Chunk()})
		}
	}
	return list
}

// Cut copies this rank's elements of whole [rows·T] to own [rows·T/C].
func (z Zigzag) Cut(own, whole []int32) {
	for i := range own {
		own[i] = whole[z.Token(i)]
	}
}

// Join copies own, this rank's elements, to their places in whole: the inverse of Cut.
func (z Zigzag) Join(whole, own []int32) {
	for i := range own {
		whole[z.Token(i)] = own[i]
	}
}

// CutStarts is Cut for the positions at which documents begin. It converts them to positions among this rank's tokens
// of the row: a start becomes the number of these tokens before it.
func (z Zigzag) CutStarts(own, whole []int32) {
	for i := range own {
		own[i] = int32(before(z.Chunks(), z.Chunk(), int(whole[z.Token(i)])))
	}
}

// before returns how many tokens of two chunks lie before a position of the row.
func before(chunks [2]int, size, position int) int {
	return min(max(position-chunks[0]*size, 0), size) + min(max(position-chunks[1]*size, 0), size)
}
