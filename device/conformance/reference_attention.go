package conformance

import (
	"math"
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// Attention is device.Device.Attention as the formula: for each query and head the softmax over all keys it sees. start holds
// Mask.Start, or is nil.
func Attention[T tensor.Number](qkv []T, heads device.Heads, length int, start []int32) (out, lse []T) {
	return attend(qkv, heads, length, start, tensor.F64)
}

// AttentionGrad is the gradient of Σ out·dout by qkv. If out is not nil, row sums of out·dout are taken from it.
func AttentionGrad[T tensor.Number](dout, out, qkv []T, heads device.Heads, length int, start []int32) []T {
	return attendGrad(dout, out, qkv, heads, length, start, tensor.F64)
}

// attend is Attention with weights rounded for the product with values if products are of BF16 operands: weights that are
// divided by their sum only afterwards, so that the largest is 1.
func attend[T tensor.Number](qkv []T, heads device.Heads, length int, start []int32, operand tensor.DType) (out, lse []T) {
	tokens := len(qkv) / heads.Cols()
	out = make([]T, tokens*heads.Q*heads.Size)
	lse = make([]T, heads.Q*tokens)
	for n := range tokens {
		for h := range heads.Q {
			p, l := probabilities(qkv, heads, length, start, n, h)
			lse[h*tokens+n] = l
			o := out[(n*heads.Q+h)*heads.Size:][:heads.Size]
			top := T(1)
			if operand == tensor.BF16 {
				top = slices.Max(p)
			}
			for j, w := range p {
				if w != 0 {
					axpy(o, rounded(w/top, operand)*top, value(qkv, heads, n-n%length+j, h))
				}
			}
		}
	}
	return out, lse
}

// attendGrad is AttentionGrad with weights and gradients of scores rounded in the same way.
func attendGrad[T tensor.Number](dout, out, qkv []T, heads device.Heads, length int, start []int32, operand tensor.DType) []T {
	tokens := len(qkv) / heads.Cols()
	d := make([]T, len(qkv))
	scale := T(heads.ScoreScale())
	for n := range tokens {
		for h := range heads.Q {
			p, _ := probabilities(qkv, heads, length, start, n, h)
			do := dout[(n*heads.Q+h)*heads.Size:][:heads.Size]
			dp := make([]T, len(p))
			var mean T
			for j, w := range p {
				dp[j] = dot(do, value(qkv, heads, n-n%length+j, h))
				mean += w * dp[j]
			}
			if out != nil {
				mean = dot(do, out[(n*heads.Q+h)*heads.Size:])
			}
			for j, w := range p {
				if w == 0 {
					continue
				}
				m := n - n%length + j
				ds := rounded(w*(dp[j]-mean), operand) * scale
				axpy(value(d, heads, m, h), rounded(w, operand), do)
				axpy(query(d, heads, n, h), ds, key(qkv, heads, m, h))
				axpy(key(d, heads, m, h), ds, query(qkv, heads, n, h))
			}
		}
	}
	return d
}

// probabilities returns the weights of keys 0…i of token n's row, i being n's position, and the log-sum-exp of the scores.
func probabilities[T tensor.Number](qkv []T, heads device.Heads, length int, start []int32, n, h int) (p []T, lse T) {
	i, first := n%length, 0
	if start != nil {
		first = int(start[n])
	}
	p = make([]T, i+1)
	top := T(math.Inf(-1))
	for j := first; j <= i; j++ {
		p[j] = dot(query(qkv, heads, n, h), key(qkv, heads, n-i+j, h)) * T(heads.ScoreScale())
		top = max(top, p[j])
	}
	var sum T
	for j := first; j <= i; j++ {
		p[j] = exp(p[j] - top)
		sum += p[j]
	}
	for j := range p {
		if sum > 0 {
			p[j] /= sum
		}
	}
	return p, top + T(math.Log(float64(sum)))
}

// query, key and value return what query head h of token n uses of qkv.
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
