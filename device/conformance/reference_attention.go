package conformance

import (
	"math"
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// Attention is device.Device.Attention as the formula: for each query and head the softmax over all keys it sees.
func Attention[T tensor.Number](qkv []T, heads device.Heads, mask device.Mask) (out, lse []T) {
	return attend(qkv, heads, mask, tensor.F64)
}

// AttentionGrad is the gradient of Σ out·dout by qkv. If out is not nil, row sums of out·dout are taken from it.
func AttentionGrad[T tensor.Number](dout, out, qkv []T, heads device.Heads, mask device.Mask) []T {
	return attendGrad(dout, out, qkv, heads, mask, tensor.F64)
}

// attend is Attention with weights rounded for the product with values if products are of BF16 operands: weights that
// are divided by their sum only afterwards, so that the largest is 1.
func attend[T tensor.Number](qkv []T, heads device.Heads, mask device.Mask, operand tensor.DType) (out, lse []T) {
	tokens, seen := len(qkv)/heads.Cols(), seenByHead(heads, mask)
	out = make([]T, tokens*heads.Q*heads.Size)
	lse = make([]T, heads.Q*tokens)
	for n := range tokens {
		for h := range heads.Q {
			p, l := probabilities(qkv, heads, mask, seen[h], n, h)
			lse[h*tokens+n] = l
			o := out[(n*heads.Q+h)*heads.Size:][:heads.Size]
			top := T(1)
			if operand == tensor.BF16 || operand == tensor.F8E4M3 {
				top = slices.Max(p)
			}
			for j, w := range p {
				if w != 0 {
					axpy(o, T(seen[h][n%mask.Len][j])*rounded(w/top, operand)*top, value(qkv, heads, n-n%mask.Len+j, h))
				}
			}
		}
	}
	return out, lse
}

// attendGrad is AttentionGrad with weights and gradients of scores rounded in the same way.
func attendGrad[T tensor.Number](dout, out, qkv []T, heads device.Heads, mask device.Mask, operand tensor.DType) []T {
	tokens, seen := len(qkv)/heads.Cols(), seenByHead(heads, mask)
	d := make([]T, len(qkv))
	scale := T(heads.ScoreScale())
	for n := range tokens {
		for h := range heads.Q {
			p, _ := probabilities(qkv, heads, mask, seen[h], n, h)
			do := dout[(n*heads.Q+h)*heads.Size:][:heads.Size]
			dp := make([]T, len(p))
			var mean T
			for j, w := range p {
				dp[j] = dot(do, value(qkv, heads, n-n%mask.Len+j, h))
				mean += T(seen[h][n%mask.Len][j]) * w * dp[j]
			}
			if out != nil {
				mean = dot(do, out[(n*heads.Q+h)*heads.Size:])
			}
			for j, w := range p {
				if w == 0 {
					continue
				}
				m := n - n%mask.Len + j
				times := T(seen[h][n%mask.Len][j])
				ds := w * (dp[j] - mean)
				if c := T(heads.Softcap); c > 0 {
					u := math.Tanh(float64(dot(query(qkv, heads, n, h), key(qkv, heads, m, h)) * scale / c))
					ds *= T(1 - u*u)
				}
				ds = times * rounded(ds, operand) * scale
				axpy(value(d, heads, m, h), times*rounded(w, operand), do)
				axpy(query(d, heads, n, h), ds, key(qkv, heads, m, h))
				axpy(key(d, heads, m, h), ds, query(qkv, heads, n, h))
			}
		}
	}
	return d
}

// probabilities returns the weights of keys 0…i of token n's row, i being n's position, and the log-sum-exp of the
// scores. seen says how often the pattern lists each pair; a weight is for one listing.
func probabilities[T tensor.Number](qkv []T, heads device.Heads, mask device.Mask, seen [][]int,
	n, h int) (p []T, lse T) {
	i, first := n%mask.Len, 0
	if mask.Start != nil {
		first = int(mask.Start.I32()[n])
	}
	p = make([]T, i+1)
	top := T(math.Inf(-1))
	for j := first; j <= i; j++ {
		if seen[i][j] == 0 {
			continue
		}
		p[j] = dot(query(qkv, heads, n, h), key(qkv, heads, n-i+j, h)) * T(heads.ScoreScale())
		if c := T(heads.Softcap); c > 0 {
			p[j] = c * T(math.Tanh(float64(p[j]/c)))
		}
		if mask.Slopes != nil {
			p[j] -= T(mask.Slopes[h]) * T(i-j)
		}
		top = max(top, p[j])
	}
	var sum T
	if mask.Sinks != nil {
		sink := T(mask.Sinks.Float64(h))
		top = max(top, sink)
		sum = exp(sink - top)
	}
	for j := range p {
		if j >= first && seen[i][j] > 0 {
			p[j] = exp(p[j] - top)
			sum += T(seen[i][j]) * p[j]
		}
	}
	for j := range p {
		if sum > 0 {
			p[j] /= sum
		}
	}
	return p, top + T(math.Log(float64(sum)))
}

// Seen returns how often the layout lists key j ≤ i for query i of a head: entry [i][j], i < length.
func Seen(l *device.Layout, head, length int) [][]int {
	seen := make([][]int, length)
	for i := range seen {
		seen[i] = make([]int, i+1)
		for j := range seen[i] {
			if l == nil {
				seen[i][j] = 1
			}
		}
	}
	if l == nil {
		return seen
	}
	for _, b := range l.Of(head).Blocks {
		for n := range b.Queries.Count {
			i := b.Queries.First + n*b.Queries.Step
			for _, k := range b.Keys {
				for m := range k.Count {
					if j := k.First + m*k.Step; i < length && j <= i && k.Near <= i-j && i-j < k.Far {
						seen[i][j]++
					}
				}
			}
		}
	}
	return seen
}

// seenByHead returns Seen of every head.
func seenByHead(heads device.Heads, mask device.Mask) [][][]int {
	seen := make([][][]int, heads.Q)
	for h := range seen {
		if h > 0 && (mask.Layout == nil || mask.Layout.Of(h) == mask.Layout.Of(h-1)) {
			seen[h] = seen[h-1]
			continue
		}
		seen[h] = Seen(mask.Layout, h, mask.Len)
	}
	return seen
}

// query, key and value return the parts of qkv that query head h of token n uses.
func query[T any](x []T, heads device.Heads, n, h int) []T {
	return x[n*heads.Cols()+h*heads.Size:][:heads.Size]
}

func key[T any](x []T, heads device.Heads, n, h int) []T {
	return x[n*heads.Cols()+(heads.Q+h*heads.KV/heads.Q)*heads.Size:][:heads.Size]
}

func value[T any](x []T, heads device.Heads, n, h int) []T {
	return x[n*heads.Cols()+(heads.Q+heads.KV+h*heads.KV/heads.Q)*heads.Size:][:heads.Size]
}

func dot[T tensor.Number](a, b []T) (sum T) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// axpy adds f·x to y.
func axpy[T tensor.Number](y []T, f T, x []T) {
	for i := range y {
		y[i] += f * x[i]
	}
}

func exp[T tensor.Number](x T) T { return T(math.Exp(float64(x))) }
