package lab

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// mixtureSampler draws mixtures around the initial one, which is the natural mixture by default. As in RegMix, they
// come from Dirichlet(s·p), p ∝ √natural, with s log-uniform from 0.1, where one source has nearly all the weight, to
// 5, where mixtures are close to p. A source has at most 15 times its natural share: a mixture with more is drawn
// again. With many sources of about equal shares, hardly any mixture passes; then mixtures are clipped.
type mixtureSampler struct {
	prior, most []float64
	clips       bool
}

const (
	priorPower                 = 0.5
	leastStrength, topStrength = 0.1, 5
	mostShare                  = 15

	trials     = 1000
	leastKept  = trials / 20 // 60 equal sources have fewer, 40 three times as many
	underflows = 1e-300
)

func newMixtureSampler(natural []float64) mixtureSampler {
	s := mixtureSampler{prior: make([]float64, len(natural)), most: make([]float64, len(natural))}
	sum := 0.0
	for i, n := range natural {
		s.prior[i], s.most[i] = math.Pow(n, priorPower), min(mostShare*n, 1)
		sum += s.prior[i]
	}
	for i := range s.prior {
		s.prior[i] /= sum
	}
	src, w, kept := rand.New(rand.NewPCG(0, 0)), make([]float64, len(natural)), 0
	for range trials {
		if s.try(src, w) {
			kept++
		}
	}
	s.clips = kept < leastKept
	return s
}

// draw returns mixture number index for a seed.
func (s mixtureSampler) draw(seed uint64, index int) []float64 {
	src := rand.New(rand.NewPCG(seed, uint64(index)))
	w := make([]float64, len(s.prior))
	for !s.try(src, w) {
		if s.clips {
			s.clip(w)
			break
		}
	}
	return w
}

// try draws a mixture, with shares below least set to 0, and reports whether the bounds hold.
func (s mixtureSampler) try(src *rand.Rand, w []float64) bool {
	sum := 0.0
	for sum < underflows {
		strength := leastStrength * math.Pow(topStrength/leastStrength, src.Float64())
		sum = 0
		for i, p := range s.prior {
			if w[i] = 0; p == 0 {
				continue
			}
			w[i] = gamma(src, p*strength)
			sum += w[i]
		}
	}
	kept := 0.0
	for i := range w {
		if w[i] /= sum; w[i] < least {
			w[i] = 0
		}
		kept += w[i]
	}
	within := true
	for i := range w {
		w[i] /= kept
		within = within && w[i] <= s.most[i]
	}
	return within
}

// clip moves the excess of sources above their bounds to the others, in proportion to the room below their bounds.
func (s mixtureSampler) clip(w []float64) {
	excess, room := 0.0, 0.0
	for i, most := range s.most {
		excess += max(w[i]-most, 0)
		room += max(most-w[i], 0)
	}
	for i, most := range s.most {
		if w[i] > most {
			w[i] = most
		} else {
			w[i] += excess / room * (most - w[i])
		}
	}
}

const (
	firstCandidate = 1 << 20 // lower numbers are the mixtures of the proxies
	candidates     = 100_000 // mixtures with a predicted loss
	winners        = 100     // the result is the mean of this many
)

// bestMix draws many mixtures and returns the mean of those with the lowest predicted losses. The mean is more stable
// than the best one, whose prediction is the most likely to be too optimistic.
func bestMix(ctx context.Context, r mixRegression, s mixtureSampler, seed uint64) ([]float64, error) {
	type candidate struct {
		loss float64
		w    []float64
	}
	all := make([]candidate, candidates)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := s.draw(seed, firstCandidate+i)
		all[i] = candidate{r.predict(w), w}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	mean := make([]float64, len(s.prior))
	for _, c := range all[:winners] {
		for i, x := range c.w {
			mean[i] += x / winners
		}
	}
	return mean, nil
}

// gamma draws from the gamma distribution with a shape above 0 and scale 1 (Marsaglia & Tsang 2000): a cubed normal
// variate, accepted or rejected. For a shape below 1 it draws with shape plus 1 and multiplies by a power of a
// uniform variate.
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		u := 1 - r.Float64() // from (0, 1]
		return gamma(r, shape+1) * math.Pow(u, 1/shape)
	}
	d := shape - 1.0/3
	for {
		x := r.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
