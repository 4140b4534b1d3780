package vec

// tanh32 is tanh x with an error below 5 ulp, exactly odd, and never beyond ±1. tanh(±Inf) = ±1, NaN stays NaN. Every
// tier computes it in the same way, with |x| clamped to tanhHigh, where tanh rounds to 1:
//
//	tanh x = x · p(x²) / q(x²)
//
// where the quotient of the two polynomials of degree 4 is within 2⁻²⁵·⁵ of tanh x / x (a relative minimax fit).
func tanh32(x float32) float32 {
	if x != x {
		return x
	}
	x = max(min(x, tanhHigh), -tanhHigh)
	s := x * x
	p := float32(tanhP4)
	p = p*s + tanhP3
	p = p*s + tanhP2
	p = p*s + tanhP1
	p = p*s + tanhP0
	q := float32(tanhQ4)
	q = q*s + tanhQ3
	q = q*s + tanhQ2
	q = q*s + tanhQ1
	q = q*s + 1
	return max(min(x*p/q, 1), -1)
}

const (
	tanhHigh = 9

	tanhP0 = 0.999999979489332
	tanhP1 = 0.13381011577013158
	tanhP2 = 0.0034955709628223045
	tanhP3 = 2.0608781947447344e-05
	tanhP4 = 1.3354215749224422e-08

	tanhQ1 = 0.4671432718056116
	tanhQ2 = 0.025876918103094726
	tanhQ3 = 0.00032856059555784673
	tanhQ4 = 7.77638184588045e-07
)
