package vec

import "math"

// exp32 is e^x with an error below 1 ulp over the whole range, including subnormal results (below 1.2 here, where
// products are rounded before the addition; the assembly uses FMA). exp(−Inf) = 0, exp(+Inf) = +Inf, NaN stays NaN.
// Every tier computes it in the same way:
//
//	n = round(x·log2 e);  r = x − n·ln 2, in two parts, |r| ≤ 0.3466;  e^x = 2ⁿ · p(r)
//
// where p(r) = 1 + r + r²·(c2 + c3·r + … + c6·r⁴) is within 2⁻²⁷·⁹ of e^r (a weighted minimax fit).
func exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < expLow:
		return 0
	case x > expHigh:
		x = expHigh
	}
	n := x*log2e + roundMagic - roundMagic
	r := x - n*ln2Hi // exact: ln2Hi has 10 bits and n at most 8
	r -= n * ln2Lo
	p := float32(expC6)
	p = p*r + expC5
	p = p*r + expC4
	p = p*r + expC3
	p = p*r + expC2
	p = p*r + 1
	p = p*r + 1
	half := int32(n) >> 1 // two steps: 2ⁿ itself may be out of range
	return p * power2(half) * power2(int32(n)-half)
}

// power2 returns 2ⁿ for n in the normal range.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

const (
	expLow  = -103.97208 // below it e^x rounds to 0
	expHigh = 89         // above it e^x is infinite, and 2ⁿ still has an exponent
	log2e   = 1.44269504088896341
	ln2Hi   = 0.693359375
	ln2Lo   = -2.12194440054690583e-4

	roundMagic = 3 << 22 // adding 1.5·2²³ leaves no fraction bits

	expC2 = 0.49999994
	expC3 = 0.16666521
	expC4 = 0.04166839
	expC5 = 0.00836872
	expC6 = 0.001381459
)
