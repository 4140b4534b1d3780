package conformance

import (
	"math"
	"slices"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// LinearAttention is device.Device.LinearAttention as the masked quadratic form: for each query and head the mean of
// all values it sees, with weights φ(q)·φ(k) times the gates between. gates holds logits [N, K], or is nil.
func LinearAttention[T tensor.Number](qkv, gates []T, heads device.Heads, length int, start []int32) (out, norm []T) {
	tokens := len(qkv) / heads.Cols()
	out = make([]T, tokens*heads.Q*heads.Size)
	norm = make([]T, heads.Q*tokens)
	phi, open := features(qkv, heads), sigmoids(gates)
	for n := range tokens {
		for h := range heads.Q {
			w, _, sum := kernelWeights(phi, open, heads, length, start, n, h)
			norm[h*tokens+n] = sum
			o := out[(n*heads.Q+h)*heads.Size:][:heads.Size]
			for j, x := range w {
				if x != 0 {
					axpy(o, x/sum, value(qkv, heads, n-n%length+j, h))
				}
			}
		}
	}
	return out, norm
}

// LinearAttentionGrad is the gradient of Σ out·dout by qkv and gates. If out is not nil, row sums of out·dout are
// taken from it.
func LinearAttentionGrad[T tensor.Number](dout, out, qkv, gates []T, heads device.Heads, length int,
	start []int32) (dqkv, dgates []T) {
	tokens := len(qkv) / heads.Cols()
	dqkv, dgates = make([]T, len(qkv)), make([]T, len(gates))
	phi, open := features(qkv, heads), sigmoids(gates)
	for n := range tokens {
		for h := range heads.Q {
			w, fade, sum := kernelWeights(phi, open, heads, length, start, n, h)
			do := dout[(n*heads.Q+h)*heads.Size:][:heads.Size]
			dw := make([]T, len(w))
			var mean T
			for j, x := range w {
				dw[j] = dot(do, value(qkv, heads, n-n%length+j, h)) / sum
				mean += x * dw[j]
			}
			if out != nil {
				mean = dot(do, out[(n*heads.Q+h)*heads.Size:])
			}
			var passing T // product that the gate of token m scales: queries from n, keys before m
			for j, x := range w {
				if fade[j] == 0 {
					continue
				}
				m, d := n-n%length+j, dw[j]-mean/sum
				if gates != nil {
					g := m*heads.KV + h*heads.KV/heads.Q
					dgates[g] += passing * (1 - open[g])
				}
				passing += x * d
				axpy(value(dqkv, heads, m, h), x/sum, do)
				axpy(query(dqkv, heads, n, h), fade[j]*d, key(phi, heads, m, h))
				axpy(key(dqkv, heads, m, h), fade[j]*d, query(phi, heads, n, h))
			}
		}
	}
	eachFeature(qkv, heads, func(i int) { dqkv[i] *= exp(min(qkv[i], 0)) })
	return dqkv, dgates
}

// kernelWeights returns the weights of keys 0…i of token n's row, i being n's position, what the gates leave of each,
// and the sum that divides them. phi and open are what features and sigmoids return.
func kernelWeights[T tensor.Number](phi, open []T, heads device.Heads, length int, start []int32,
	n, h int) (w, fade []T, sum T) {
	i, first := n%length, 0
	if start != nil {
		first = int(start[n])
	}
	w, fade = make([]T, i+1), make([]T, i+1)
	left := T(1)
	for j := i; j >= first; j-- {
		m := n - i + j
		fade[j] = left
		w[j] = left * dot(query(phi, heads, n, h), key(phi, heads, m, h))
		sum += w[j]
		if open != nil {
			left *= open[m*heads.KV+h*heads.KV/heads.Q]
		}
	}
	return w, fade, sum + 1e-6
}

// features returns qkv with elu(x) + 1 in place of queries and keys.
func features[T tensor.Number](qkv []T, heads device.Heads) []T {
	phi := slices.Clone(qkv)
	eachFeature(qkv, heads, func(i int) { phi[i] = max(qkv[i], 0) + exp(min(qkv[i], 0)) })
	return phi
}

// eachFeature calls f for every element of a query or key.
func eachFeature[T tensor.Number](qkv []T, heads device.Heads, f func(i int)) {
	for i := range qkv {
		if i%heads.Cols() < (heads.Q+heads.KV)*heads.Size {
			f(i)
		}
	}
}

func sigmoids[T tensor.Number](x []T) (y []T) {
	for _, v := range x {
		y = append(y, T(1/(1+math.Exp(-float64(v)))))
	}
	return y
}

// gates draws logits of gates for n tokens: none, some around 0, or some near 1.
func (s *scope) gates(n int, heads device.Heads) *tensor.Tensor {
	bias := rapid.SampledFrom([]float64{-1, 0, 4}).Draw(s.T, "bias of gates, or −1 for none")
	if bias < 0 {
		return nil
	}
	g := s.random(s.wide, n, heads.KV)
	for i := range g.Len() {
		g.SetFloat64(i, g.Float64(i)+bias)
	}
	return g
}

func readGates[T tensor.Number](gates *tensor.Tensor, w uint64) []T {
	if gates == nil {
		return nil
	}
	return read[T](gates, w)
}

func linearAttention(s *scope) call {
	heads, rows := s.heads(false), rapid.IntRange(1, 2).Draw(s.T, "B")
	mask := s.mask(rows)
	n := rows * mask.Len
	qkv, gates := s.random(s.act, n, heads.Cols()), s.gates(n, heads)
	out, norm := s.empty(s.act, n, heads.Q*heads.Size), s.empty(s.wide, heads.Q, n)
	c := call{
		run: func(d device.Device) { d.LinearAttention(out, norm, qkv, gates, heads, mask) },
		out: []*tensor.Tensor{out, norm},
	}
	c.formulas(linearAttentionOf[float64](qkv, gates, heads, mask), linearAttentionOf[float32](qkv, gates, heads, mask))
	return c
}

func linearAttentionOf[T tensor.Number](qkv, gates *tensor.Tensor, heads device.Heads,
	mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		out, norm := LinearAttention(read[T](qkv, w), readGates[T](gates, w), heads, mask.Len, starts(mask))
		return [][]T{out, norm}
	}
}

func linearAttentionGrad(s *scope) call {
	heads, rows := s.heads(false), rapid.IntRange(1, 2).Draw(s.T, "B")
	mask := s.mask(rows)
	n := rows * mask.Len
	qkv, gates := s.random(s.act, n, heads.Cols()), s.gates(n, heads)
	out, norm := s.empty(s.act, n, heads.Q*heads.Size), s.empty(s.wide, heads.Q, n)
	s.LinearAttention(out, norm, qkv, gates, heads, mask)
	s.wait(s.T)
	dout, dqkv := s.random(s.act, n, heads.Q*heads.Size), s.empty(s.act, n, heads.Cols())
	var dgates *tensor.Tensor
	results := []*tensor.Tensor{dqkv}
	if gates != nil {
		dgates = s.empty(s.wide, n, heads.KV)
		results = append(results, dgates)
	}
	c := call{
		run:    func(d device.Device) { d.LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates, heads, mask) },
		out:    results,
		factor: 4,
	}
	c.formulas(linearAttentionGradOf[float64](dout, out, qkv, gates, heads, mask),
		linearAttentionGradOf[float32](dout, out, qkv, gates, heads, mask))
	return c
}

func linearAttentionGradOf[T tensor.Number](dout, out, qkv, gates *tensor.Tensor, heads device.Heads,
	mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		var o []T
		if w != 0 { // the kernel reads the rounded output; so may the measure of its error
			o = read[T](out, w)
		}
		dqkv, dgates := LinearAttentionGrad(read[T](dout, w), o, read[T](qkv, w), readGates[T](gates, w), heads,
			mask.Len, starts(mask))
		return [][]T{dqkv, dgates}
	}
}

// linearAttentionCached takes a sequence in two pieces. The format of the cache in between is up to the device.
func linearAttentionCached(s *scope) call {
	heads, n := s.heads(false), s.size("T")
	qkv, gates, out := s.random(s.act, n, heads.Cols()), s.gates(n, heads), s.empty(s.act, n, heads.Q*heads.Size)
	first := rapid.IntRange(0, n-1).Draw(s.T, "first piece")
	dirty := func(dt tensor.DType, shape ...int) tensor.Tensor {
		values := make([]float64, shape[0]*shape[1])
		for i := range values {
			values[i] = nan
		}
		return *s.of(dt, values, shape...)
	}
	cache := device.Cache{
		KV:    dirty(s.act, device.LinearChunk, 2*heads.KV*heads.Size),
		State: dirty(s.wide, heads.KV*(heads.Size+1), heads.Size),
		Gates: dirty(s.wide, device.LinearChunk, heads.KV),
	}
	c := call{
		run: func(d device.Device) {
			for _, piece := range [][2]int{{0, first}, {first, n}} {
				if piece[0] == piece[1] {
					continue
				}
				in, to := qkv.Slice(piece[0], piece[1]), out.Slice(piece[0], piece[1])
				var open *tensor.Tensor
				if gates != nil {
					part := gates.Slice(piece[0], piece[1])
					open = &part
				}
				d.LinearAttentionCached(&to, &in, open, &cache, piece[0], heads)
			}
		},
		out: []*tensor.Tensor{out},
	}
	mask := device.Mask{Len: n}
	c.formulas(linearAttentionOf[float64](qkv, gates, heads, mask), linearAttentionOf[float32](qkv, gates, heads, mask))
	return c
}
