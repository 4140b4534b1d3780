package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// A step is an optimizer's formulas on tensors: the parameter and its gradient first, then the state.
type step struct {
	tensors []*tensor.Tensor
	f64     func(x [][]float64) // change x, the tensors' elements, as the kernel does
	f32     func(x [][]float32)
}

// call of a step whose kernel is run.
func (s step) call(run func(d device.Device)) call {
	c := call{run: run, out: append([]*tensor.Tensor{s.tensors[0]}, s.tensors[2:]...)}
	c.formulas(after(s.tensors, s.f64), after(s.tensors, s.f32))
	return c
}

// after returns the elements of all tensors but the gradient after a step.
func after[T tensor.Number](tensors []*tensor.Tensor, f func([][]T)) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		var x [][]T
		for _, t := range tensors {
			x = append(x, read[T](t, w))
		}
		f(x)
		return append([][]T{x[0]}, x[2:]...)
	}
}

// noSubnormals sets numbers below the normal range to 0, as steps may treat them as 0.
func noSubnormals(tensors ...*tensor.Tensor) {
	for _, t := range tensors {
		for i := range t.Len() {
			if v := t.Float64(i); math.Abs(v) < 0x1p-126 {
				t.SetFloat64(i, math.Copysign(0, v))
			}
		}
	}
}

// parameter draws a parameter and its gradient.
func (s *scope) parameter() (p, g *tensor.Tensor) {
	n := s.size("n") * s.size("m")
	return s.random(s.wide, n), s.random(s.wide, n)
}

func root[T tensor.Number](x T) T { return T(math.Sqrt(float64(x))) }

// fall returns the parameter p after decay and the update u.
func fall[T tensor.Number](p, u, shrink T, cautious bool) T {
	if cautious && u*p < 0 {
		shrink = 0
	}
	return p*(1-shrink) - u
}

func adamW(s *scope) call {
	p, g := s.parameter()
	m, v := s.random(s.wide, p.Len()), s.positive(s.wide, p.Len())
	o := device.AdamW{
		LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Scale: 0.25, Correct1: 1 / (1 - 0.9*0.9),
		Correct2: 1 / (1 - 0.95*0.95),
	}
	o.Coupled = rapid.Bool().Draw(s.T, "coupled")
	if rapid.Bool().Draw(s.T, "g for m") {
		o.Beta1, o.Correct1, m = 0, 1, g
	}
	f := step{[]*tensor.Tensor{p, g, m, v}, adamWOf[float64](o), adamWOf[float32](o)}
	return f.call(func(d device.Device) { d.AdamW(p, g, m, v, o) })
}

func adamWOf[T tensor.Number](o device.AdamW) func(x [][]T) {
	return func(x [][]T) {
		p, m, v := x[0], x[2], x[3]
		for i, g := range x[1] {
			g *= T(o.Scale)
			decay := T(o.LR * o.Decay)
			if o.Coupled {
				g, decay = g+T(o.Decay)*p[i], 0
			}
			m[i] = T(o.Beta1)*m[i] + T(1-o.Beta1)*g
			v[i] = T(o.Beta2)*v[i] + T(1-o.Beta2)*g*g
			u := m[i] * T(o.Correct1) / (root(v[i]*T(o.Correct2)) + T(o.Eps))
			p[i] = fall(p[i], T(o.LR)*u, decay, o.Cautious)
		}
	}
}

func momentum(s *scope) call {
	p, g := s.parameter()
	m := s.random(s.wide, p.Len())
	o := device.Momentum{
		LR: 0.1, Beta: 0.9, Keep: 0.8, Decay: 0.1, Scale: 0.25, Nesterov: rapid.Bool().Draw(s.T, "nesterov"),
	}
	f := step{[]*tensor.Tensor{p, g, m}, momentumOf[float64](o), momentumOf[float32](o)}
	return f.call(func(d device.Device) { d.Momentum(p, g, m, o) })
}

func momentumOf[T tensor.Number](o device.Momentum) func(x [][]T) {
	return func(x [][]T) {
		p, m := x[0], x[2]
		for i, g := range x[1] {
			g = T(o.Scale)*g + T(o.Decay)*p[i]
			m[i] = T(o.Beta)*m[i] + T(o.Keep)*g
			u := m[i]
			if o.Nesterov {
				u = g + T(o.Beta)*m[i]
			}
			p[i] -= T(o.LR) * u
		}
	}
}

func lion(s *scope) call {
	p, g := s.parameter()
	m := s.random(s.wide, p.Len())
	noSubnormals(g, m) // because its sign would matter
	o := device.Lion{
		LR: 1e-2, Beta1: 0.9, Beta2: 0.99, Decay: 0.5, Scale: 0.25, Cautious: rapid.Bool().Draw(s.T, "cautious"),
	}
	f := step{[]*tensor.Tensor{p, g, m}, lionOf[float64](o), lionOf[float32](o)}
	return f.call(func(d device.Device) { d.Lion(p, g, m, o) })
}

func lionOf[T tensor.Number](o device.Lion) func(x [][]T) {
	return func(x [][]T) {
		p, m := x[0], x[2]
		for i, g := range x[1] {
			g *= T(o.Scale)
			u := T(o.Beta1)*m[i] + T(1-o.Beta1)*g
			if u != 0 {
				u = T(math.Copysign(o.LR, float64(u)))
			}
			m[i] = T(o.Beta2)*m[i] + T(1-o.Beta2)*g
			p[i] = fall(p[i], u, T(o.LR*o.Decay), o.Cautious)
		}
	}
}

func adEMAMix(s *scope) call {
	p, g := s.parameter()
	m1, m2, v := s.random(s.wide, p.Len()), s.random(s.wide, p.Len()), s.positive(s.wide, p.Len())
	o := device.AdEMAMix{
		LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Beta3: 0.999, Alpha: 5, Eps: 1e-8, Decay: 0.1, Scale: 0.25,
		Correct1: 1 / (1 - 0.9*0.9), Correct2: 1 / (1 - 0.95*0.95),
	}
	f := step{[]*tensor.Tensor{p, g, m1, m2, v}, adEMAMixOf[float64](o), adEMAMixOf[float32](o)}
	return f.call(func(d device.Device) { d.AdEMAMix(p, g, m1, m2, v, o) })
}

func adEMAMixOf[T tensor.Number](o device.AdEMAMix) func(x [][]T) {
	return func(x [][]T) {
		p, m1, m2, v := x[0], x[2], x[3], x[4]
		for i, g := range x[1] {
			g *= T(o.Scale)
			m1[i] = T(o.Beta1)*m1[i] + T(1-o.Beta1)*g
			m2[i] = T(o.Beta3)*m2[i] + T(1-o.Beta3)*g
			v[i] = T(o.Beta2)*v[i] + T(1-o.Beta2)*g*g
			u := (m1[i]*T(o.Correct1) + T(o.Alpha)*m2[i]) / (root(v[i]*T(o.Correct2)) + T(o.Eps))
			p[i] = fall(p[i], T(o.LR)*u, T(o.LR*o.Decay), o.Cautious)
		}
	}
}

func descend(s *scope) call {
	p, u := s.parameter()
	noSubnormals(p, u)
	o := device.Descend{LR: 0.1, Shrink: 0.05, Cautious: rapid.Bool().Draw(s.T, "cautious")}
	f := step{[]*tensor.Tensor{p, u}, descendOf[float64](o), descendOf[float32](o)}
	return f.call(func(d device.Device) { d.Descend(p, u, o) })
}

func descendOf[T tensor.Number](o device.Descend) func(x [][]T) {
	return func(x [][]T) {
		for i, p := range x[0] {
			x[0][i] = fall(p, T(o.LR)*x[1][i], T(o.Shrink), o.Cautious)
		}
	}
}

func adafactor(s *scope) call {
	rows, cols := s.size("rows"), s.size("cols")
	p, g := s.random(s.wide, rows, cols), s.random(s.wide, rows, cols)
	o := device.Adafactor{
		LR: 0.1, Beta1: 0.9, Beta2: 0.8, Eps: 1e-30, Clip: 1, MinScale: 1e-3, Shrink: 0.01, Scale: 0.25,
	}
	o.Absolute = rapid.Bool().Draw(s.T, "absolute")
	var v, c, m *tensor.Tensor
	f := step{tensors: []*tensor.Tensor{p, g}}
	if rapid.Bool().Draw(s.T, "factored") {
		v, c = s.positive(s.wide, rows), s.positive(s.wide, cols)
		f.tensors = append(f.tensors, v, c)
	} else {
		v = s.positive(s.wide, rows, cols)
		f.tensors = append(f.tensors, v)
	}
	if rapid.Bool().Draw(s.T, "momentum") {
		m = s.random(s.wide, rows, cols)
		f.tensors = append(f.tensors, m)
	}
	f.f64, f.f32 = adafactorOf[float64](rows, cols, c != nil, m != nil, o),
		adafactorOf[float32](rows, cols, c != nil, m != nil, o)
	return f.call(func(d device.Device) { d.Adafactor(p, g, m, v, c, o) })
}

func adafactorOf[T tensor.Number](rows, cols int, factored, momentum bool, o device.Adafactor) func(x [][]T) {
	return func(x [][]T) {
		p, g, v := x[0], x[1], x[2]
		u := make([]T, len(p))
		square := func(i int) T { return T(o.Scale*o.Scale)*g[i]*g[i] + T(o.Eps) }
		next := func(v, mean T) T { return T(o.Beta2)*v + T(1-o.Beta2)*mean }
		if factored {
			c, mean := x[3], T(0)
			for i := range rows {
				sum := T(0)
				for j := range cols {
					sum += square(i*cols + j)
				}
				v[i] = next(v[i], sum/T(cols))
				mean += v[i] / T(rows)
			}
			for j := range cols {
				sum := T(0)
				for i := range rows {
					sum += square(i*cols + j)
				}
				c[j] = next(c[j], sum/T(rows))
			}
			for i := range u {
				u[i] = T(o.Scale) * g[i] / root(v[i/cols]/mean*c[i%cols])
			}
		} else {
			for i := range u {
				v[i] = next(v[i], square(i))
				u[i] = T(o.Scale) * g[i] / root(v[i])
			}
		}
		rate := T(o.LR) / max(1, rms(u)/T(o.Clip))
		if !o.Absolute {
			rate *= max(T(o.MinScale), rms(p))
		}
		for i := range p {
			step := rate * u[i]
			if momentum {
				m := x[len(x)-1]
				m[i] = T(o.Beta1)*m[i] + T(1-o.Beta1)*step
				step = m[i]
			}
			p[i] = fall(p[i], step, T(o.Shrink), o.Cautious)
		}
	}
}

func rms[T tensor.Number](x []T) T {
	sum := T(0)
	for _, v := range x {
		sum += v * v
	}
	return root(sum / T(len(x)))
}
