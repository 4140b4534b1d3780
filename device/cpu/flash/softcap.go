package flash

// The soft-cap of Gemma 2 (arXiv 2408.00118): a score s becomes c·tanh(s/c) before the mask, so that no score exceeds
// ±c. It is one pass over a tile of scores, here of products x = q·k, whose limit is c/scale. Its derivative is 1 −
// (s/c)² of the capped score. Cost: a tanh per pair of query and key, forward and backward. Use it for checkpoints
// that were trained with it; for a new model prefer QK-norm, which costs next to nothing.

// capScores caps the products s [rows, tileN] of a panel, and changes the gradients dp of their probabilities so that
// p·(dp − delta), which is computed next, is the gradient before the cap: dp − (dp − delta)·(s/c)².
func (j *backwardJob[T]) capScores(s, dp []T, rows int, delta []T) {
	n, limit, inverse := j.r.tileN, T(j.limit), T(1/j.limit)
	delta = delta[:n]
	for i := range rows {
		x, g := s[i*j.queries:][:n], dp[i*j.queries:][:n]
		j.r.softcap(x, x, limit)
		for c, d := range delta {
			u := x[c] * inverse
			g[c] -= (g[c] - d) * u * u
		}
	}
}
