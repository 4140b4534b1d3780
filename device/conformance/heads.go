package conformance

import (
	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// The kernels that work on the heads of a fused projection.

// heads draws head counts and the size of a head.
func (s *scope) heads(even bool) device.Heads {
	kv := rapid.IntRange(1, 2).Draw(s.T, "K")
	h := device.Heads{Q: kv * rapid.IntRange(1, 3).Draw(s.T, "H/K"), KV: kv}
	h.Size = rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13, 16, 22, 32, 48, 64, 70}).Draw(s.T, "E")
	if even {
		h.Size += h.Size % 2
	}
	return h
}

func qkNorm(s *scope) call {
	heads, n := s.heads(false), s.size("N")
	norms := heads.Q + heads.KV
	qkv, gainQ, gainK := s.random(s.act, n, heads.Cols()), s.random(s.wide, heads.Size), s.random(s.wide, heads.Size)
	xhat, rstd := s.empty(s.storage("xhat"), n, norms*heads.Size), s.empty(s.wide, n, norms)
	c := call{
		run:    func(d device.Device) { d.QKNorm(qkv, xhat, rstd, gainQ, gainK, heads, eps) },
		out:    []*tensor.Tensor{qkv, xhat, rstd},
		rounds: xhat.DType(),
	}
	c.formulas(qkNormOf[float64](qkv, xhat, gainQ, gainK, heads), qkNormOf[float32](qkv, xhat, gainQ, gainK, heads))
	return c
}

func qkNormOf[T tensor.Number](qkv, stored, gainQ, gainK *tensor.Tensor, heads device.Heads) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y := read[T](qkv, w)
		gains := [][]T{read[T](gainQ, w), read[T](gainK, w)}
		var xhat, rstd []T
		eachNorm(heads, qkv.Rows(), func(n, h, at int) {
			x, s := RMSNorm(y[at:at+heads.Size], heads.Size, eps)
			copy(y[at:], Scale(round(x, stored), gains[kind(h, heads)]))
			xhat, rstd = append(xhat, x...), append(rstd, s...)
		})
		return [][]T{y, xhat, rstd}
	}
}

func qkNormGrad(s *scope) call {
	heads, n := s.heads(false), s.size("N")
	norms := heads.Q + heads.KV
	dqkv, xhat, rstd := s.random(s.act, n, heads.Cols()), s.random(s.storage("xhat"), n, norms*heads.Size),
		s.positive(s.wide, n, norms)
	gainQ, gainK, dgainQ, dgainK := s.random(s.wide, heads.Size), s.random(s.wide, heads.Size),
		s.random(s.wide, heads.Size), s.random(s.wide, heads.Size)
	c := call{
		run:    func(d device.Device) { d.QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads) },
		out:    []*tensor.Tensor{dqkv, dgainQ, dgainK},
		factor: 4,
	}
	c.formulas(qkNormGradOf[float64](dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads),
		qkNormGradOf[float32](dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK, heads))
	return c
}

func qkNormGradOf[T tensor.Number](dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor,
	heads device.Heads) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		dx, dgains := read[T](dqkv, w), [][]T{read[T](dgainQ, w), read[T](dgainK, w)}
		gains := [][]T{read[T](gainQ, w), read[T](gainK, w)}
		hat, scale := read[T](xhat, w), read[T](rstd, w)
		size, norms := heads.Size, heads.Q+heads.KV
		eachNorm(heads, dqkv.Rows(), func(n, h, at int) {
			i := n*norms + h
			d, dgain := RMSNormGrad(dx[at:at+size], hat[i*size:(i+1)*size], scale[i:i+1], gains[kind(h, heads)])
			copy(dx[at:], d)
			axpy(dgains[kind(h, heads)], 1, dgain)
		})
		return [][]T{dx, dgains[0], dgains[1]}
	}
}

// eachNorm calls f for every head that QKNorm normalises, with the place of its first element in qkv.
func eachNorm(heads device.Heads, rows int, f func(n, h, at int)) {
	for n := range rows {
		for h := range heads.Q + heads.KV {
			f(n, h, n*heads.Cols()+h*heads.Size)
		}
	}
}

// kind returns 0 for a query head, 1 for a key head.
func kind(h int, heads device.Heads) int {
	if h < heads.Q {
		return 0
	}
	return 1
}

// mask draws rows of tokens with or without documents.
func (s *scope) mask(rows int) device.Mask {
	m := device.Mask{Len: s.size("T")}
	if rapid.Bool().Draw(s.T, "documents") {
		every := 1 + s.size("tokens per document")
		m.Start = s.empty(tensor.I32, rows*m.Len)
		for i := range m.Start.I32() {
			m.Start.I32()[i] = int32(i % m.Len / every * every)
		}
	}
	return m
}

func starts(m device.Mask) []int32 {
	if m.Start == nil {
		return nil
	}
	return m.Start.I32()
}

// pattern draws a mask with or without any layout for so many heads, and slopes.
func (s *scope) pattern(rows int, h device.Heads) device.Mask {
	heads := h.Q
	m := s.mask(rows)
	if rapid.Bool().Draw(s.T, "layout") {
		m.Layout = DrawLayout(s.T, m.Len, heads)
	}
	if h.Softcap == 0 && rapid.IntRange(0, 2).Draw(s.T, "slopes") == 0 {
		m.Slopes = rapid.SliceOfN(rapid.Float64Range(0, 1), heads, heads).Draw(s.T, "slope of each head")
	}
	if rapid.IntRange(0, 2).Draw(s.T, "sinks") == 0 {
		m.Sinks = s.random(s.wide, heads)
	}
	return m
}

// scoredHeads draws heads whose scores may have a scale of their own.
func (s *scope) scoredHeads() device.Heads {
	h := s.heads(false)
	h.Scale = rapid.SampledFrom([]float64{0, 0, 0.07, 0.5}).Draw(s.T, "scale of scores")
	h.Softcap = rapid.SampledFrom([]float64{0, 0, 0, 0.8, 30}).Draw(s.T, "soft-cap of scores")
	h.FP8 = s.act == tensor.BF16 && rapid.Bool().Draw(s.T, "FP8 probabilities")
	return h
}

func attention(s *scope) call {
	heads, rows := s.scoredHeads(), rapid.IntRange(1, 2).Draw(s.T, "B")
	mask := s.pattern(rows, heads)
	n := rows * mask.Len
	qkv, out, lse := s.random(s.act, n, heads.Cols()), s.empty(s.act, n, heads.Q*heads.Size),
		s.empty(s.wide, heads.Q, n)
	c := call{
		run:    func(d device.Device) { d.Attention(out, lse, qkv, heads, mask) },
		out:    []*tensor.Tensor{out, lse},
		factor: biasFactor(mask),
		rounds: roundsWeights(heads),
	}
	c.formulas(attentionOf[float64](qkv, heads, mask), attentionOf[float32](qkv, heads, mask))
	return c
}

func attentionOf[T tensor.Number](qkv *tensor.Tensor, heads device.Heads, mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		out, lse := attend(read[T](qkv, w), heads, mask, weightOf(qkv, heads, w))
		return [][]T{out, lse}
	}
}

// operandOf returns the format to which operands of the products inside attention may be rounded: the storage of its
// arguments, as in FlashAttention and in its measure of error. The exact result, w = 0, rounds nothing.
func operandOf(qkv *tensor.Tensor, w uint64) tensor.DType {
	if w == 0 {
		return tensor.F64
	}
	return qkv.DType()
}

// weightOf is operandOf for the weights of values, which FP8 rounds further.
func weightOf(qkv *tensor.Tensor, heads device.Heads, w uint64) tensor.DType {
	if heads.FP8 && w != 0 {
		return tensor.F8E4M3
	}
	return operandOf(qkv, w)
}

// biasFactor returns call.factor of attention: with slopes there are scores of 100, whose units are 8e-6, and kernels
// round them differently from the formula.
func biasFactor(mask device.Mask) float64 {
	if mask.Slopes != nil {
		return 4
	}
	return 2
}

// roundsWeights returns call.rounds of attention: kernels round weights before they know the largest score, so some
// differ from the formula's.
func roundsWeights(heads device.Heads) tensor.DType {
	if heads.FP8 {
		return tensor.F8E4M3
	}
	return tensor.F64
}

// sinksGrad draws log-sum-exps; some of them are no larger than the sinks.
func sinksGrad(s *scope) call {
	heads, n := s.heads(false), s.size("N")
	out, dout := s.random(s.act, n, heads.Q*heads.Size), s.random(s.act, n, heads.Q*heads.Size)
	lse, sinks, dsinks := s.random(s.wide, heads.Q, n), s.random(s.wide, heads.Q), s.random(s.wide, heads.Q)
	c := call{
		run:    func(d device.Device) { d.AttentionSinksGrad(dsinks, dout, out, lse, sinks, heads) },
		out:    []*tensor.Tensor{dsinks},
		factor: 4,
	}
	c.formulas(sinksGradOf[float64](dsinks, dout, out, lse, sinks, heads),
		sinksGradOf[float32](dsinks, dout, out, lse, sinks, heads))
	return c
}

func sinksGradOf[T tensor.Number](dsinks, dout, out, lse, sinks *tensor.Tensor,
	heads device.Heads) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		d, do, o, l, z := read[T](dsinks, w), read[T](dout, w), read[T](out, w), read[T](lse, w), read[T](sinks, w)
		for h := range heads.Q {
			for n := range out.Rows() {
				at, end := (n*heads.Q+h)*heads.Size, (n*heads.Q+h+1)*heads.Size
				d[h] -= exp(z[h]-l[h*out.Rows()+n]) * dot(do[at:end], o[at:end])
			}
		}
		return [][]T{d}
	}
}

func attentionGrad(s *scope) call {
	heads, rows := s.scoredHeads(), rapid.IntRange(1, 2).Draw(s.T, "B")
	mask := s.pattern(rows, heads)
	n := rows * mask.Len
	qkv, out, lse := s.random(s.act, n, heads.Cols()), s.empty(s.act, n, heads.Q*heads.Size),
		s.empty(s.wide, heads.Q, n)
	s.Attention(out, lse, qkv, heads, mask)
	s.wait(s.T)
	dout, dqkv := s.random(s.act, n, heads.Q*heads.Size), s.empty(s.act, n, heads.Cols())
	c := call{
		run:    func(d device.Device) { d.AttentionGrad(dqkv, dout, out, lse, qkv, heads, mask) },
		out:    []*tensor.Tensor{dqkv},
		factor: 4,
	}
	c.formulas(attentionGradOf[float64](dout, out, qkv, heads, mask),
		attentionGradOf[float32](dout, out, qkv, heads, mask))
	return c
}

func attentionGradOf[T tensor.Number](dout, out, qkv *tensor.Tensor, heads device.Heads,
	mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		var o []T
		if w != 0 { // the kernel reads the rounded output; so may the measure of its error
			o = read[T](out, w)
		}
		return [][]T{attendGrad(read[T](dout, w), o, read[T](qkv, w), heads, mask, operandOf(qkv, w))}
	}
}
