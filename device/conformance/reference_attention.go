package conformance

import (
	"math"

	"anneal/device"
)

// Attention is device.Device.Attention in float64, written as the formula: for each query and head the softmax over all
// keys it sees. start holds Mask.Start, or is nil.
func Attention(qkv []float64, heads device.Heads, length int, start []int32) (out, lse []float64) {
	tokens := len(qkv) / heads.Cols()
	out = make([]float64, tokens*heads.Q*heads.Size)
	lse = make([]float64, heads.Q*tokens)
	for n := range tokens {
		for h := range heads.Q {
			p, l := probabilities(qkv, heads, length, start, n, h)
			lse[h*tokens+n] = l
			o := out[(n*heads.Q+h)*heads.Size:][:heads.Size]
			for j, w := range p {
				if w != 0 {
					axpy(o, w, value(qkv, heads, n-n%length+j, h))
				}
			}
		}
	}
	return out, lse
}

// AttentionGrad is the gradient of Σ out·dout by qkv.
func AttentionGrad(dout, qkv []float64, heads device.Heads, length int, start []int32) []float64 {
	tokens := len(qkv) / heads.Cols()
	d := make([]float64, len(qkv))
	scale := 1 / math.Sqrt(float64(heads.Size))
	for n := range tokens {
		for h := range heads.Q {
			p, _ := probabilities(qkv, heads, length, start, n, h)
			do := dout[(n*heads.Q+h)*heads.Size:][:heads.Size]
			dp := make([]float64, len(p))
			var mean float64
			for j, w := range p {
				dp[j] = dot(do, value(qkv, heads, n-n%length+j, h))
				mean += w * dp[j]
			}
			for j, w := range p {
				if w == 0 {
					continue
				}
				m := n - n%length + j
				ds := w * (dp[j] - mean) * scale
				axpy(value(d, heads, m, h), w, do)
				axpy(query(d, heads, n, h), ds, key(qkv, heads, m, h))
				axpy(key(d, heads, m, h), ds, query(qkv, heads, n, h))
			}
		}
	}
	return d
}

// probabilities returns the weights of keys 0…i of token n's row, i being n's position, and the log-sum-exp of the scores.
func probabilities(qkv []float64, heads device.Heads, length int, start []int32, n, h int) (p []float64, lse float64) {
	i, first := n%length, 0
	if start != nil {
		first = int(start[n])
	}
	p = make([]float64, i+1)
	top := math.Inf(-1)
	for j := first; j <= i; j++ {
		p[j] = dot(query(qkv, heads, n, h), key(qkv, heads, n-i+j, h)) / math.Sqrt(float64(heads.Size))
		top = math.Max(top, p[j])
	}
	var sum float64
	for j := first; j <= i; j++ {
		p[j] = math.Exp(p[j] - top)
		sum += p[j]
	}
	for j := range p {
		if sum > 0 {
			p[j] /= sum
		}
	}
	return p, top + math.Log(sum)
}

// query, key and value return what query head h of token n uses of qkv.
func query(x []float64, heads device.Heads, n, h int) []float64 {
	return x[n*heads.Cols()+h*heads.Size:][:heads.Size]
}

func key(x []float64, heads device.Heads, n, h int) []float64 {
	return x[n*heads.Cols()+(heads.Q+h*heads.KV/heads.Q)*heads.Size:][:heads.Size]
}

func value(x []float64, heads device.Heads, n, h int) []float64 {
	return x[n*heads.Cols()+(heads.Q+heads.KV+h*heads.KV/heads.Q)*heads.Size:][:heads.Size]
}

func dot(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// axpy adds f·x to y.
func axpy(y []float64, f float64, x []float64) {
	for i := range y {
		y[i] += f * x[i]
	}
}
