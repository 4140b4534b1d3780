package vec

// Updates holds the primitives of optimizers: one step on a stretch of a parameter, its gradient and its state. They
// may treat subnormal numbers as 0.
type Updates[T Float] struct {
	AdamW    func(p, g, m, v []T, o *AdamW[T])
	Adam     func(p, g, m, v []T, o *AdamW[T])
	Momentum func(p, g, m []T, o *Momentum[T])
	Lion     func(p, g, m []T, o *Lion[T])
	AdEMAMix func(p, g, m1, m2, v []T, o *AdEMAMix[T])
	Descend  func(p, u []T, o *Descend[T])
	Whiten   func(u, g, v []T, o *Whiten[T])
	// Sophia returns the number of elements that were not clipped, for rows of up to 2²⁴.
	Sophia func(p, g, m, h []T, o *Sophia[T]) T
	// Decode is dst = scale · the numbers of the codes. Encode finds the codes of the numbers nearest to scale·src,
	// which must be in [−1, 1], or in [0, 1] for an unsigned code. The code of NaN is unspecified.
	Decode func(dst []T, codes []byte, c *Code[T], scale T)
	Encode func(codes []byte, src []T, c *Code[T], scale T)
	// AdamW8 is AdamW on 8-bit moments, with one element of mTop and vTop, the largest magnitude, per block of 256
	// elements. It combines Decode, AdamW, MaxAbs and Encode. A largest magnitude below 2⁻¹²⁶ becomes 0, and so does
	// its block. It is nil in tiers that use those four instead.
	AdamW8 func(p, g []T, m, v []byte, mTop, vTop []T, o *AdamW8[T])
	// MeanSquare is h ← beta·h + weight·g².
	MeanSquare func(h, g []T, beta, weight T)
}

// The following structs hold the constants of one step, in the order in which the assembly reads them. An update u is
// subtracted from the parameter by
//
//	p ← p − (Decay·p + u), without Decay·p where u·p < Floor
//
// A Floor of −Inf decays everywhere. Decay is subtracted as a product, because a factor 1 − Decay would keep only a
// few digits of Decay in float32.

// AdamW holds the constants of Adam with decoupled decay, and of Adam, which adds Decay·p to the gradient instead:
//
//	g' = Scale·g;  m ← Beta1·m + Keep1·g';  v ← Beta2·v + Keep2·g'²;  u = Rate·m / (sqrt(Correct2·v) + Eps)
type AdamW[T Float] struct {
	Scale, Beta1, Keep1, Beta2, Keep2, Decay, Rate, Correct2, Eps, Floor T
}

// AdamW8 holds the constants of AdamW, the codes of the moments, and memory for the moments of a block.
type AdamW8[T Float] struct {
	AdamW[T]
	Signed, Unsigned *Code[T] // of m, of v
	Moments          []T      // m, then v
}

// Momentum is g' = Scale·g + Decay·p;  m ← Beta·m + Keep·g';  p ← p − (RateG·g' + RateM·m).
type Momentum[T Float] struct{ Scale, Decay, Beta, Keep, RateG, RateM T }

// Lion is g' = Scale·g;  u = Rate·sign(Beta1·m + Keep1·g');  m ← Beta2·m + Keep2·g'.
type Lion[T Float] struct {
	Scale, Beta1, Keep1, Beta2, Keep2, Decay, Rate, Floor T
}

// AdEMAMix is g' = Scale·g;  m1 ← Beta1·m1 + Keep1·g';  m2 ← Beta3·m2 + Keep3·g';  v ← Beta2·v + Keep2·g'²;
// u = (Rate1·m1 + Rate2·m2) / (sqrt(Correct2·v) + Eps).
type AdEMAMix[T Float] struct {
	Scale, Beta1, Keep1, Beta2, Keep2, Beta3, Keep3, Rate1, Rate2, Correct2, Eps, Decay, Floor T
}

// Descend is u = Rate·u, for a given update.
type Descend[T Float] struct{ Rate, Decay, Floor T }

// Whiten is g' = Scale·g; v ← Beta·v + Keep·(g'² + Eps); u = g' / sqrt(v). It does not change a parameter.
type Whiten[T Float] struct{ Scale, Beta, Keep, Eps T }

// Sophia is m ← Beta·m + Keep·g;  u = Rate · clamp(m / (Rho·h + Tiny), −1, 1).
type Sophia[T Float] struct {
	Beta, Keep, Rho, Tiny, Rate, Decay, Floor T
	One, MinusOne                             T // the limits, 1 and −1
}

func (f functions[T]) updates() Updates[T] {
	return Updates[T]{
		AdamW: f.adamW, Adam: f.adam, Momentum: momentum[T], Lion: lion[T], AdEMAMix: f.adEMAMix, Descend: descend[T],
		Whiten: f.whiten, Sophia: sophia[T], MeanSquare: meanSquare[T], Decode: decode[T], Encode: encode[T],
	}
}

// decay adds the decay of p to its update u.
func decay[T Float](u, p, decay, floor T) T {
	if u*p >= floor {
		u += decay * p
	}
	return u
}

func (f functions[T]) adamW(p, g, m, v []T, o *AdamW[T]) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i := range p {
		gi := o.Scale * g[i]
		m[i] = o.Beta1*m[i] + o.Keep1*gi
		v[i] = o.Beta2*v[i] + o.Keep2*gi*gi
		p[i] -= decay(o.Rate*m[i]/(f.sqrt(o.Correct2*v[i])+o.Eps), p[i], o.Decay, o.Floor)
	}
}

func (f functions[T]) adam(p, g, m, v []T, o *AdamW[T]) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i := range p {
		gi := o.Scale*g[i] + o.Decay*p[i]
		m[i] = o.Beta1*m[i] + o.Keep1*gi
		v[i] = o.Beta2*v[i] + o.Keep2*gi*gi
		p[i] -= o.Rate * m[i] / (f.sqrt(o.Correct2*v[i]) + o.Eps)
	}
}

func momentum[T Float](p, g, m []T, o *Momentum[T]) {
	g, m = g[:len(p)], m[:len(p)]
	for i := range p {
		gi := o.Scale*g[i] + o.Decay*p[i]
		m[i] = o.Beta*m[i] + o.Keep*gi
		p[i] -= o.RateG*gi + o.RateM*m[i]
	}
}

func lion[T Float](p, g, m []T, o *Lion[T]) {
	g, m = g[:len(p)], m[:len(p)]
	for i := range p {
		gi := o.Scale * g[i]
		u := o.Beta1*m[i] + o.Keep1*gi
		switch {
		case u > 0:
			u = o.Rate
		case u < 0:
			u = -o.Rate
		} // else it is 0 or NaN
		m[i] = o.Beta2*m[i] + o.Keep2*gi
		p[i] -= decay(u, p[i], o.Decay, o.Floor)
	}
}

func (f functions[T]) adEMAMix(p, g, m1, m2, v []T, o *AdEMAMix[T]) {
	g, m1, m2, v = g[:len(p)], m1[:len(p)], m2[:len(p)], v[:len(p)]
	for i := range p {
		gi := o.Scale * g[i]
		m1[i] = o.Beta1*m1[i] + o.Keep1*gi
		m2[i] = o.Beta3*m2[i] + o.Keep3*gi
		v[i] = o.Beta2*v[i] + o.Keep2*gi*gi
		u := (o.Rate1*m1[i] + o.Rate2*m2[i]) / (f.sqrt(o.Correct2*v[i]) + o.Eps)
		p[i] -= decay(u, p[i], o.Decay, o.Floor)
	}
}

func descend[T Float](p, u []T, o *Descend[T]) {
	u = u[:len(p)]
	for i := range p {
		p[i] -= decay(o.Rate*u[i], p[i], o.Decay, o.Floor)
	}
}

func (f functions[T]) whiten(u, g, v []T, o *Whiten[T]) {
	g, v = g[:len(u)], v[:len(u)]
	for i := range u {
		gi := o.Scale * g[i]
		v[i] = o.Beta*v[i] + o.Keep*(gi*gi+o.Eps)
		u[i] = gi / f.sqrt(v[i])
	}
}

func sophia[T Float](p, g, m, h []T, o *Sophia[T]) T {
	g, m, h = g[:len(p)], m[:len(p)], h[:len(p)]
	var inside T
	for i := range p {
		m[i] = o.Beta*m[i] + o.Keep*g[i]
		r := max(min(m[i]/(o.Rho*h[i]+o.Tiny), o.One), o.MinusOne)
		if r*r < o.One {
			inside++
		}
		p[i] -= decay(o.Rate*r, p[i], o.Decay, o.Floor)
	}
	return inside
}

func meanSquare[T Float](h, g []T, beta, weight T) {
	g = g[:len(h)]
	for i := range h {
		h[i] = beta*h[i] + weight*(g[i]*g[i])
	}
}
