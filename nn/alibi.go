package nn

import "math"

// ALiBiSlopes returns the slopes of attention with linear biases (Press et al. 2022, arXiv 2108.12409), one per head:
// the score of query i and key j is lowered by slope·(i−j), and there are no other positions. For a power of two n
// the slopes are 2^(−8/n), 2^(−16/n), … 2^(−8). For another number they are those of the next lower power of two p,
// followed by every other slope of 2p. They are not trained.
//
// A model reads rows several times as long as its training rows about as well as those, but not better: heads with
// steep slopes only see their neighbourhood. ALiBi costs no memory and almost no time. If rows stay as long as in
// training, rotary positions are usually better.
func ALiBiSlopes(heads int) []float64 {
	p := 1
	for 2*p <= heads {
		p *= 2
	}
	var slopes []float64
	for h := range p {
		slopes = append(slopes, math.Exp2(-8*float64(h+1)/float64(p)))
	}
	for h := 0; len(slopes) < heads; h += 2 {
		slopes = append(slopes, math.Exp2(-8*float64(h+1)/float64(2*p)))
	}
	return slopes
}
