package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// Each kernel has two functions here: one draws a call, the other computes the expected results with the references.

const eps = 1e-5

func matMul(s *scope) call {
	form := rapid.SampledFrom([]device.Form{device.NN, device.NT, device.TN}).Draw(s.T, "form")
	m, n, k := s.size("M"), s.size("N"), s.size("K")
	opt := device.MatMulOptions{Operand: s.storage("operand"), Accumulate: rapid.Bool().Draw(s.T, "accumulate")}
	if s.act != tensor.F64 {
		opt.Operand = rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.TF32}).Draw(s.T,
			"rounded to")
	}
	opt.Scale = rapid.SampledFrom([]float64{0, 1, 0.125, -3}).Draw(s.T, "scale")
	shapes := map[device.Form][4]int{device.NN: {m, k, k, n}, device.NT: {m, k, n, k}, device.TN: {k, m, k, n}}[form]
	a, b := s.random(s.storage("a"), shapes[0], shapes[1]), s.random(s.storage("b"), shapes[2], shapes[3])
	dst := s.empty(s.storage("dst"), m, n)
	if opt.Accumulate {
		s.fill(dst)
	}
	if rapid.Bool().Draw(s.T, "bias") {
		opt.Bias = s.random(s.wide, n)
	}
	c := call{run: func(d device.Device) { d.MatMul(dst, a, b, form, opt) }, out: []*tensor.Tensor{dst}}
	c.formulas(matMulOf[float64](dst, a, b, form, opt, k), matMulOf[float32](dst, a, b, form, opt, k))
	return c
}

func matMulOf[T tensor.Number](dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions,
	k int) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		c := MatMul(operand[T](a, opt.Operand, w), operand[T](b, opt.Operand, w), form, dst.Rows(), dst.Cols(), k)
		if opt.Scale != 0 {
			for i := range c {
				c[i] *= T(opt.Scale)
			}
		}
		if opt.Bias != nil {
			c = addRow(c, roundedBias[T](opt.Bias, dst.DType(), w))
		}
		if opt.Accumulate {
			axpy(c, 1, read[T](dst, w))
		}
		return [][]T{c}
	}
}

// roundedBias returns a bias as the naive formula adds it: rounded to the result's format, as in libraries of matrix
// products.
func roundedBias[T tensor.Number](bias *tensor.Tensor, dt tensor.DType, w uint64) []T {
	if w == 0 {
		return read[T](bias, w)
	}
	values := make([]float64, bias.Len())
	for i := range values {
		values[i] = bias.Float64(i)
	}
	return read[T](of(dt, values, len(values)), w)
}

// operand returns the elements of t rounded to dt, the operands of products, unless t is stored in a narrow format.
func operand[T tensor.Number](t *tensor.Tensor, dt tensor.DType, w uint64) []T {
	x := read[T](t, w)
	if t.DType() == tensor.F32 {
		for i := range x {
			x[i] = rounded(x[i], dt)
		}
	}
	return x
}

func rounded[T tensor.Number](x T, operand tensor.DType) T {
	switch operand {
	case tensor.BF16:
		return T(tensor.BF16FromFloat32(float32(x)).Float32())
	case tensor.F16:
		return T(tensor.F16FromFloat32(float32(x)).Float32())
	case tensor.TF32:
		return T(tensor.RoundTF32(float32(x)))
	case tensor.F8E4M3: // of probabilities, which are at most 1
		return T(tensor.E4M3FromFloat32(float32(x*256)).Float32() / 256)
	}
	return x
}

func rmsNorm(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	x, gain := s.random(s.wide, n, cols), s.random(s.wide, cols)
	y, xhat, rstd := s.empty(s.storage("y"), n, cols), s.empty(s.storage("xhat"), n, cols), s.empty(s.wide, n)
	c := call{
		run:    func(d device.Device) { d.RMSNorm(y, xhat, rstd, x, gain, eps) },
		out:    []*tensor.Tensor{y, xhat, rstd},
		rounds: xhat.DType(),
	}
	c.formulas(rmsNormOf[float64](xhat, x, gain), rmsNormOf[float32](xhat, x, gain))
	return c
}

func rmsNormOf[T tensor.Number](stored, x, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		xhat, rstd := RMSNorm(read[T](x, w), x.Cols(), eps)
		return [][]T{Scale(round(xhat, stored), read[T](gain, w)), xhat, rstd}
	}
}

// round returns x rounded to the storage of t, for kernels that continue with the stored values. Kernels may round an
// element near a tie the other way; call.rounds allows for that.
func round[T tensor.Number](x []T, t *tensor.Tensor) []T {
	r := tensor.View(t.DType(), make([]byte, len(x)*t.DType().Size()), len(x))
	for i, v := range x {
		r.SetFloat64(i, float64(v))
	}
	return read[T](&r, 0)
}

func rmsNormAgain(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	xhat, gain, y := s.random(s.storage("xhat"), n, cols), s.random(s.wide, cols), s.empty(s.storage("y"), n, cols)
	c := call{run: func(d device.Device) { d.RMSNormAgain(y, xhat, gain) }, out: []*tensor.Tensor{y}}
	c.formulas(scaleOf[float64](xhat, gain), scaleOf[float32](xhat, gain))
	return c
}

func scaleOf[T tensor.Number](x, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T { return [][]T{Scale(read[T](x, w), read[T](gain, w))} }
}

func rmsNormGrad(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	dy, xhat := s.random(s.storage("dy"), n, cols), s.random(s.storage("xhat"), n, cols)
	rstd, gain := s.positive(s.wide, n), s.random(s.wide, cols)
	dx, dgain := s.random(s.wide, n, cols), s.random(s.wide, cols)
	c := call{
		run:    func(d device.Device) { d.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain) },
		out:    []*tensor.Tensor{dx, dgain},
		factor: 4,
		terms:  normTerms(dy, xhat, rstd, gain),
	}
	c.formulas(rmsNormGradOf[float64](dx, dgain, dy, xhat, rstd, gain),
		rmsNormGradOf[float32](dx, dgain, dy, xhat, rstd, gain))
	return c
}

func rmsNormGradOf[T tensor.Number](dx, dgain, dy, xhat, rstd, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, g := RMSNormGrad(read[T](dy, w), read[T](xhat, w), read[T](rstd, w), read[T](gain, w))
		axpy(x, 1, read[T](dx, w))
		axpy(g, 1, read[T](dgain, w))
		return [][]T{x, g}
	}
}

func rope(s *scope) call {
	const positions = 50
	heads, n, inverse := s.heads(true), s.size("N"), rapid.Bool().Draw(s.T, "inverse")
	heads.Interleaved = rapid.Bool().Draw(s.T, "interleaved")
	cos, sin := s.empty(s.wide, positions, heads.Size/2), s.empty(s.wide, positions, heads.Size/2)
	for i := range cos.Len() {
		angle := float64(i*i%7919) / 100
		cos.SetFloat64(i, math.Cos(angle))
		sin.SetFloat64(i, math.Sin(angle))
	}
	pos, qkv := s.integers(n, positions), s.random(s.act, n, heads.Cols())
	c := call{run: func(d device.Device) { d.RoPE(qkv, cos, sin, pos, heads, inverse) }, out: []*tensor.Tensor{qkv}}
	c.formulas(ropeOf[float64](qkv, cos, sin, pos, heads, inverse), ropeOf[float32](qkv, cos, sin, pos, heads, inverse))
	return c
}

func ropeOf[T tensor.Number](qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		return [][]T{RoPE(read[T](qkv, w), read[T](cos, w), read[T](sin, w), pos.I32(), heads, inverse)}
	}
}

func swiGLU(s *scope) call {
	n, f := s.size("N"), s.size("F")
	gu, act := s.random(s.storage("gu"), n, 2*f), s.empty(s.storage("act"), n, f)
	c := call{run: func(d device.Device) { d.SwiGLU(act, gu) }, out: []*tensor.Tensor{act}}
	c.formulas(swiGLUOf[float64](gu), swiGLUOf[float32](gu))
	return c
}

func swiGLUOf[T tensor.Number](gu *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T { return [][]T{SwiGLU(read[T](gu, w), gu.Cols()/2)} }
}

func swiGLUGrad(s *scope) call {
	n, f := s.size("N"), s.size("F")
	gu, dact, dgu := s.random(s.storage("gu"), n, 2*f), s.random(s.storage("dact"), n, f),
		s.empty(s.storage("dgu"), n, 2*f)
	c := call{run: func(d device.Device) { d.SwiGLUGrad(dgu, nil, dact, gu) }, out: []*tensor.Tensor{dgu}, factor: 4}
	c.formulas(swiGLUGradOf[float64](dact, gu), swiGLUGradOf[float32](dact, gu))
	return c
}

func swiGLUGradOf[T tensor.Number](dact, gu *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T { return [][]T{SwiGLUGrad(read[T](dact, w), read[T](gu, w), dact.Cols())} }
}

func embedding(s *scope) call {
	n, v, cols := s.size("N"), s.size("V"), s.size("D")
	table, ids, x := s.random(s.storage("table"), v, cols), s.ids(n, v), s.empty(s.wide, n, cols)
	c := call{run: func(d device.Device) { d.Embedding(x, table, ids) }, out: []*tensor.Tensor{x}}
	c.formulas(embeddingOf[float64](table, ids), embeddingOf[float32](table, ids))
	return c
}

func embeddingOf[T tensor.Number](table, ids *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		var x []T
		rows, cols := read[T](table, w), table.Cols()
		for _, id := range ids.I32() {
			if id == device.Elsewhere {
				x = append(x, make([]T, cols)...)
				continue
			}
			x = append(x, rows[int(id)*cols:][:cols]...)
		}
		return [][]T{x}
	}
}

func embeddingGrad(s *scope) call {
	n, v, cols := s.size("N"), s.size("V"), s.size("D")
	dtable, ids, dx := s.random(s.wide, v, cols), s.ids(n, v), s.random(s.wide, n, cols)
	c := call{run: func(d device.Device) { d.EmbeddingGrad(dtable, dx, ids) }, out: []*tensor.Tensor{dtable}, factor: 4}
	c.formulas(embeddingGradOf[float64](dtable, dx, ids), embeddingGradOf[float32](dtable, dx, ids))
	return c
}

func embeddingGradOf[T tensor.Number](dtable, dx, ids *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		d, x, cols := read[T](dtable, w), read[T](dx, w), dx.Cols()
		for n, id := range ids.I32() {
			if id != device.Elsewhere {
				axpy(d[int(id)*cols:][:cols], 1, x[n*cols:])
			}
		}
		return [][]T{d}
	}
}

func crossEntropy(s *scope) call {
	n, v := s.size("n"), s.size("V")
	logits, targets, loss := s.random(s.storage("logits"), n, v), s.ids(n, v), s.empty(s.wide, n)
	for i := range targets.I32() {
		if i%5 == 2 {
			targets.I32()[i] = device.Ignored
		}
	}
	o := device.LossOptions{
		Softcap: rapid.SampledFrom([]float64{0, 0, 8, 30}).Draw(s.T, "softcap"),
		ZLoss:   rapid.SampledFrom([]float64{0, 0, 1e-4, 0.1}).Draw(s.T, "z-loss"),
		Scale:   rapid.SampledFrom([]float64{0, 0, 0.3, 1024}).Draw(s.T, "scale"),
		LogZ:    s.empty(s.wide, n),
	}
	c := call{
		run: func(d device.Device) { d.CrossEntropy(loss, nil, logits, targets, o) },
		out: []*tensor.Tensor{loss, o.LogZ},
	}
	c.terms = largest(logits) // a loss is log Z less a logit, and may be next to nothing
	if grad := rapid.SampledFrom([]string{"none", "in place", "apart"}).Draw(s.T, "gradient"); grad != "none" {
		dlogits := logits
		if grad == "apart" {
			dlogits = s.empty(s.storage("dlogits"), n, v)
		}
		c.run = func(d device.Device) { d.CrossEntropy(loss, dlogits, logits, targets, o) }
		c.out = append(c.out, dlogits)
		if rapid.Bool().Draw(s.T, "log Z is given") {
			return givenCrossEntropy(s, dlogits, logits, targets, o)
		}
	}
	c.formulas(crossEntropyOf[float64](logits, targets, o), crossEntropyOf[float32](logits, targets, o))
	return c
}

// givenCrossEntropy is for logits that are some columns of more.
func givenCrossEntropy(s *scope, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) call {
	o.LogZ, o.Given = nil, s.empty(s.wide, targets.Len())
	_, own, _ := CrossEntropy(read[float64](logits, 0), targets.I32(), device.LossOptions{})
	for i, z := range own {
		o.Given.SetFloat64(i, z+float64(i%4))
	}
	c := call{
		run: func(d device.Device) { d.CrossEntropy(nil, dlogits, logits, targets, o) },
		out: []*tensor.Tensor{dlogits},
	}
	if c.terms = o.Scale; o.Scale == 0 {
		c.terms = 1 // a gradient is a probability less 1 at the target, and may be next to nothing
	}
	c.formulas(func(w uint64) [][]float64 { return crossEntropyOf[float64](logits, targets, o)(w)[2:] },
		func(w uint64) [][]float32 { return crossEntropyOf[float32](logits, targets, o)(w)[2:] })
	return c
}

func crossEntropyOf[T tensor.Number](logits, targets *tensor.Tensor, o device.LossOptions) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		loss, logZ, dlogits := CrossEntropy(read[T](logits, w), targets.I32(), o)
		return [][]T{loss, logZ, dlogits}
	}
}

func softcap(s *scope) call {
	limit := rapid.SampledFrom([]float64{0.5, 5, 30}).Draw(s.T, "limit")
	x := s.random(s.storage("x"), s.size("n"), s.size("V"))
	c := call{run: func(d device.Device) { d.Softcap(x, limit) }, out: []*tensor.Tensor{x}}
	c.formulas(softcapOf[float64](x, limit), softcapOf[float32](x, limit))
	return c
}

func softcapOf[T tensor.Number](x *tensor.Tensor, limit float64) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y := read[T](x, w)
		for i := range y {
			y[i] = T(limit) * T(math.Tanh(float64(y[i]/T(limit))))
		}
		return [][]T{y}
	}
}
