package lab

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lawLoss falls like a power of each source's share, as held-out losses do.
func lawLoss(w []float64) float64 {
	sum := 0.0
	for i, a := range []float64{1, 2, 0.5} {
		sum += a * math.Pow(max(w[i], least), -0.3)
	}
	return sum / 3
}

// On losses that follow a power law with noise, predictions of losses not seen rank them well, and the mixture chosen
// is nearly as good as the best there is.
func TestRegressionFindsTheMixture(t *testing.T) {
	s := newMixtureSampler([]float64{0.6, 0.3, 0.1})
	r := rand.New(rand.NewPCG(1, 1))
	var w [][]float64
	var y []float64
	for i := range 32 {
		w = append(w, s.draw(7, i))
		y = append(y, lawLoss(w[i])*(1+0.01*r.NormFloat64()))
	}
	if rank := rankCorrelation(crossPredict(w, y), y); rank < 0.9 {
		t.Errorf("held-out rank correlation %.3f", rank)
	}
	fit := fitMix(w, y)
	got, err := bestMix(t.Context(), fit, s, 7)
	if err != nil {
		t.Fatal(err)
	}
	best, sum := math.Inf(1), 0.0
	for i := range 2000 {
		best = min(best, lawLoss(s.draw(8, i)))
	}
	for _, x := range got {
		sum += x
	}
	t.Logf("%s, λ = %g: %.3f has the loss %.4f, the best of 2,000 has %.4f",
		fit.Family, fit.Penalty, got, lawLoss(got), best)
	if loss := lawLoss(got); loss > 1.03*best || math.Abs(sum-1) > 1e-9 {
		t.Errorf("mixture %.4f, which sums to %v, has the loss %.4f; the best of 2,000 has %.4f", got, sum, loss, best)
	}
}

// What has no share to begin with has none in any mixture.
func TestMixturesLeaveOutWhatHasNoShare(t *testing.T) {
	s := newMixtureSampler([]float64{0.7, 0, 0.3})
	for i := range 50 {
		if w := s.draw(5, i); w[1] != 0 || math.Abs(w[0]+w[2]-1) > 1e-12 {
			t.Fatalf("mixture %d is %v", i, w)
		}
	}
}

// The closed form of the leave-one-out error is what leaving each out gives, for features that are standardised once.
func TestLeaveOneOutErrorInClosedForm(t *testing.T) {
	s := newMixtureSampler([]float64{0.5, 0.3, 0.2})
	var w [][]float64
	var y []float64
	for i := range 12 {
		w = append(w, s.draw(3, i))
		y = append(y, lawLoss(w[i]))
	}
	r := mixRegression{Penalty: 1e-2, features: func(w []float64) []float64 { return w[:1] }}
	if !r.fit(w, y) {
		t.Fatal("no fit")
	}
	penalty, sum := r.Penalty*float64(len(w)), 0.0
	for out := range w {
		// Minimise Σ (y − b − a·x)² + penalty·a² over all but one.
		var n, sx, sxx, sy, sxy float64
		for i := range w {
			if x := (w[i][0] - r.mean[0]) / r.std[0]; i != out {
				n, sx, sxx, sy, sxy = n+1, sx+x, sxx+x*x, sy+y[i], sxy+x*y[i]
			}
		}
		a := (sxy - sx*sy/n) / (sxx - sx*sx/n + penalty)
		e := y[out] - (sy-a*sx)/n - a*(w[out][0]-r.mean[0])/r.std[0]
		sum += e * e
	}
	if want := math.Sqrt(sum / 12); math.Abs(r.Error-want) > 1e-12 {
		t.Errorf("leave-one-out error %.15g, by leaving each out %.15g", r.Error, want)
	}
}

// A constant loss, and as many features as observations, give a fit and no panic.
func TestRegressionOfLittle(t *testing.T) {
	s := newMixtureSampler([]float64{0.5, 0.5})
	w := [][]float64{s.draw(1, 0), s.draw(1, 1), s.draw(1, 2), s.draw(1, 3), s.draw(1, 4), s.draw(1, 5)}
	r := fitMix(w, []float64{2, 2, 2, 2, 2, 2})
	if p := r.predict([]float64{0.4, 0.6}); math.Abs(p-2) > 1e-9 {
		t.Errorf("a constant loss of 2 is predicted as %v", p)
	}
}

func TestRanks(t *testing.T) {
	if got := ranks([]float64{3, 1, 2, 1}); !slices.Equal(got, []float64{3, 0.5, 2, 0.5}) {
		t.Errorf("ranks %v", got)
	}
}

// Mixtures drawn sum to 1, keep the bounds, have the prior ∝ √natural as their mean where no bound cuts, and are those
// of their seed and number.
func TestMixturesDrawn(t *testing.T) {
	natural := []float64{0.5, 0.3, 0.2}
	s := newMixtureSampler(natural)
	mean := make([]float64, 3)
	const n = 20_000
	for i := range n {
		w := s.draw(5, i)
		sum := 0.0
		for j, x := range w {
			sum += x
			mean[j] += x / n
			if x != 0 && x < least {
				t.Fatalf("mixture %d has a share of %g", i, x)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("mixture %d sums to %v", i, sum)
		}
	}
	for j, want := range s.prior {
		if math.Abs(mean[j]-want) > 0.01 {
			t.Errorf("source %d has %.4f of the mixtures drawn, want %.4f", j, mean[j], want)
		}
	}
	if !slices.Equal(s.draw(5, 17), s.draw(5, 17)) || slices.Equal(s.draw(5, 17), s.draw(6, 17)) {
		t.Error("a mixture is not a function of seed and number")
	}
	rare := newMixtureSampler([]float64{0.98, 0.02})
	for i := range 1000 {
		if w := rare.draw(1, i); w[1] > 15*0.02 {
			t.Fatalf("a source of 2 %% has %.3f of mixture %d", w[1], i)
		}
	}
}

// Of many sources, mixtures are drawn as quickly as of few, within the bounds, and they differ.
func TestMixturesOfManySources(t *testing.T) {
	const n = 300
	natural := make([]float64, n)
	for i := range natural[1:] {
		natural[1+i] = 1. / (n - 1) // the first has none
	}
	s := newMixtureSampler(natural)
	for i := range 20 {
		w, sum, full := s.draw(1, i), 0.0, 0
		for j, x := range w {
			if sum += x; x > s.most[j] {
				t.Errorf("source %d has %.4f of mixture %d, at most %.4f", j, x, i, s.most[j])
			}
			if x > 0.99*s.most[j] {
				full++
			}
		}
		if math.Abs(sum-1) > 1e-12 || w[0] != 0 || full == 0 || full > n/2 {
			t.Errorf("mixture %d sums to %v, the first source has %v, %d as much as they may", i, sum, w[0], full)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bestMix(done, mixRegression{}, s, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
}
