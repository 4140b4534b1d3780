package scaling

import (
	"fmt"
	"math"
)

// A sizeRule is the line ln D = mean + slope·ln N through points, and how closely they follow it. If the tokens of all
// points follow from their sizes, a law of both is a sum of two powers of the size, and nothing tells which is which.
type sizeRule struct {
	slope       float64
	ratio       float64 // geometric mean of tokens per parameter
	correlation float64 // of ln N and ln D
	off         float64 // root of the mean square of ln D less the line: 0.05 is 5 % of the tokens
}

// tokensBySize returns the rule of points that differ in params and in tokens.
func tokensBySize(points []Point) sizeRule {
	p := newProfile(points, 0)
	var nn, nd, dd float64
	for i, n := range p.logN {
		d := p.logD[i]
		nn, nd, dd = nn+n*n, nd+n*d, dd+d*d
	}
	r := sizeRule{slope: nd / nn, ratio: math.Exp(p.meanD - p.meanN), correlation: nd / math.Sqrt(nn*dd)}
	r.off = math.Sqrt(max(0, dd-nd*nd/nn) / float64(len(points)))
	return r
}

// exact reports whether tokens rise with the size and follow from it within 5 %. Of such points, even 95 % intervals
// miss the true law. In most simulated studies whose tokens differ from the rule by more, the intervals are wide and
// hold it. Points of equal FLOPs, whose tokens fall with the size, are no such case: size and tokens then move the loss
// in opposite directions.
func (r sizeRule) exact() bool { return r.correlation > 0.9 && r.off < 0.05 }

// close reports whether the rule is the likely reason why a fit fails.
func (r sizeRule) close() bool { return r.correlation > 0.99 }

// reason explains why points that follow the rule cannot be fitted.
func (r sizeRule) reason() string {
	if math.Abs(r.slope-1) < 0.1 {
		return fmt.Sprintf("all points have about the same number of tokens per parameter, %.3g, so the effect of "+
			"params cannot be told from that of tokens: add points of the same sizes with fewer and with more tokens, "+
			"such as %.3g and %.3g per parameter", r.ratio, r.ratio/4, r.ratio*4)
	}
	return fmt.Sprintf("in all points tokens follow from params, about as params^%.2g, so the effect of params cannot "+
		"be told from that of tokens: add points of the same sizes with fewer and with more tokens", r.slope)
}
