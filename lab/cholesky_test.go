package lab

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The solution, put back into a positive definite system, gives its right-hand side.
func TestCholeskySolvesPositiveDefiniteSystems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(1, 30).Draw(t, "n")
		factor, whole, b := make([][]float64, n), make([][]float64, n), make([]float64, n)
		columns := make([][]float64, n)
		for i := range n {
			columns[i], b[i] = make([]float64, n), r.NormFloat64()
			for j := range n {
				columns[i][j] = r.NormFloat64()
			}
		}
		for i := range n {
			whole[i] = make([]float64, n)
			for j := range n {
				whole[i][j] = dot(columns[i], columns[j])
			}
			whole[i][i]++
			factor[i] = append([]float64(nil), whole[i][:i+1]...)
		}
		if !cholesky(factor) {
			t.Fatalf("%d equations: no factor", n)
		}
		x := choleskySolve(factor, b)
		for i := range n {
			if got := dot(whole[i], x); math.Abs(got-b[i]) > 1e-8 {
				t.Errorf("%d equations: row %d gives %v, want %v", n, i, got, b[i])
			}
		}
	})
	if cholesky([][]float64{{1}, {2, 1}}) || cholesky([][]float64{{0}}) || cholesky([][]float64{{math.NaN()}}) {
		t.Error("a matrix that is not positive definite has a factor")
	}
}

// A gamma variate of shape a has mean a, variance a, and a logarithm whose mean is the derivative of ln Γ(a).
func TestGammaMoments(t *testing.T) {
	const n = 200_000
	for _, shape := range []float64{0.05, 0.3, 1, 1.7, 20} {
		r := rand.New(rand.NewPCG(1, math.Float64bits(shape)))
		sum, squares, logs := 0.0, 0.0, 0.0
		for range n {
			x := gamma(r, shape)
			sum, squares, logs = sum+x, squares+(x-shape)*(x-shape), logs+math.Log(x)
		}
		up, _ := math.Lgamma(shape + 1e-5)
		down, _ := math.Lgamma(shape - 1e-5)
		digamma := (up - down) / 2e-5
		// Five standard errors each; the fourth central moment of the distribution is 3a² + 6a, the variance of its
		// logarithm about 1/a².
		for what, c := range map[string]struct{ got, want, deviation float64 }{
			"mean":           {sum / n, shape, math.Sqrt(shape)},
			"variance":       {squares / n, shape, math.Sqrt(2*shape*shape + 6*shape)},
			"mean logarithm": {logs / n, digamma, 1/shape + 1/math.Sqrt(shape)},
		} {
			if math.Abs(c.got-c.want) > 5*c.deviation/math.Sqrt(n) {
				t.Errorf("shape %v: the %s is %.5f, want %.5f", shape, what, c.got, c.want)
			}
		}
	}
}
