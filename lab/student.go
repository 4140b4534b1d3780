package lab

import (
	"math"
	"slices"
)

// Student's t distribution and a correction for several tests, to decide whether variants differ.

// tTail returns the probability that |t| exceeds x with n degrees of freedom: the regularised incomplete beta function
// I_{n/(n+x²)}(n/2, 1/2).
func tTail(x, freedom float64) float64 {
	return betaShare(freedom/(freedom+x*x), freedom/2, 0.5)
}

// tQuantile returns the x that |t| exceeds with probability p.
func tQuantile(p, freedom float64) float64 {
	low, high := 0.0, 1e4
	for range 100 {
		if mid := (low + high) / 2; tTail(mid, freedom) > p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// betaShare returns the regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun
// 26.5.8).
func betaShare(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - betaShare(1-x, b, a)
	}
	gamma := func(x float64) float64 { y, _ := math.Lgamma(x); return y }
	front := math.Exp(gamma(a+b)-gamma(a)-gamma(b)+a*math.Log(x)+b*math.Log(1-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 300 {
		m := float64(i / 2)
		term := 1.0
		switch {
		case i == 0:
		case i%2 == 0:
			term = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			term = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / notZero(1+term*d, tiny)
		c = notZero(1+term/c, tiny)
		f *= c * d
		if i > 0 && math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return front * (f - 1)
}

func notZero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}

// holm corrects the p values of several tests for multiple comparisons (Holm 1979): with a limit of 0.05 for the
// corrected values, the probability of any false finding is at most 0.05. NaN stays NaN.
func holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	for i, x := range p {
		if !math.IsNaN(x) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return i - j
	})
	corrected, most := slices.Clone(p), 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(order)-rank)))
		corrected[i] = most
	}
	return corrected
}
