package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// MatMul returns the product [m, n] of a and b, whose sums have k terms; form says how a and b lie.
func MatMul[T tensor.Number](a, b []T, form device.Form, m, n, k int) []T {
	c := make([]T, m*n)
	for i := range m {
		for j := range n {
			var sum T
			for l := range k {
				switch form {
				case device.NN:
					sum += a[i*k+l] * b[l*n+j]
				case device.NT:
					sum += a[i*k+l] * b[j*k+l]
				case device.TN:
					sum += a[l*m+i] * b[l*n+j]
				}
			}
			c[i*n+j] = sum
		}
	}
	return c
}

// RMSNorm returns xhat and rstd of rows of x as long as cols; y is Scale of xhat.
func RMSNorm[T tensor.Number](x []T, cols int, eps float64) (xhat, rstd []T) {
	for r := 0; r < len(x); r += cols {
		row := x[r : r+cols]
		s := T(1 / math.Sqrt(float64(dot(row, row))/float64(cols)+eps))
		rstd = append(rstd, s)
		for _, v := range row {
			xhat = append(xhat, v*s)
		}
	}
	return xhat, rstd
}

// Scale returns rows of x times gain, elementwise.
func Scale[T tensor.Number](x, gain []T) []T {
	y := make([]T, len(x))
	for i := range x {
		y[i] = x[i] * gain[i%len(gain)]
	}
	return y
}

// RMSNormGrad returns the additions of RMSNorm with a gain to the gradients of x and gain.
func RMSNormGrad[T tensor.Number](dy, xhat, rstd, gain []T) (dx, dgain []T) {
	cols := len(gain)
	dx, dgain = make([]T, len(dy)), make([]T, cols)
	for r, s := range rstd {
		g, h := Scale(dy[r*cols:(r+1)*cols], gain), xhat[r*cols:(r+1)*cols]
		mean := dot(g, h) / T(cols)
		for c := range cols {
			dx[r*cols+c] = s * (g[c] - h[c]*mean)
			dgain[c] += dy[r*cols+c] * h[c]
		}
	}
	return dx, dgain
}

// RoPE returns qkv with its query and key heads turned by the angles of pos, or back.
func RoPE[T tensor.Number](qkv, cos, sin []T, pos []int32, heads device.Heads, inverse bool) []T {
	y := append([]T(nil), qkv...)
	half := heads.Size / 2
	for n, p := range pos {
		for h := range heads.Q + heads.KV {
			v := y[n*heads.Cols()+h*heads.Size:]
			for i := range half {
				a, b := i, i+half
				if heads.Interleaved {
					a, b = 2*i, 2*i+1
				}
				c, s := cos[int(p)*half+i], sin[int(p)*half+i]
				if inverse {
					s = -s
				}
				v[a], v[b] = v[a]*c-v[b]*s, v[a]*s+v[b]*c
			}
		}
	}
	return y
}

// SwiGLU returns silu(gate)·up for rows of gu that hold f of each.
func SwiGLU[T tensor.Number](gu []T, f int) []T {
	var act []T
	for r := 0; r < len(gu); r += 2 * f {
		for c := range f {
			g := gu[r+c]
			act = append(act, g/(1+exp(-g))*gu[r+f+c])
		}
	}
	return act
}

// SwiGLUGrad returns the gradient of Σ act·dact by gu.
func SwiGLUGrad[T tensor.Number](dact, gu []T, f int) []T {
	d := make([]T, len(gu))
	for i, da := range dact {
		g, u := i/f*2*f+i%f, i/f*2*f+f+i%f
		s := 1 / (1 + exp(-gu[g]))
		d[g] = da * gu[u] * s * (1 + gu[g]*(1-s))
		d[u] = da * gu[g] * s
	}
	return d
}

// CrossEntropy returns the loss and log Z of each row of logits, and the gradient of the summed loss with the terms
// that o adds.
func CrossEntropy[T tensor.Number](logits []T, targets []int32, o device.LossOptions) (loss, logZ, dlogits []T) {
	cols := len(logits) / len(targets)
	loss, logZ, dlogits = make([]T, len(targets)), make([]T, len(targets)), make([]T, len(logits))
	for r, target := range targets {
		if target == device.Ignored {
			continue
		}
		row, d := logits[r*cols:(r+1)*cols], dlogits[r*cols:(r+1)*cols]
		top := row[0]
		for _, x := range row {
			top = max(top, x)
		}
		var sum T
		for c, x := range row {
			d[c] = exp(x - top)
			sum += d[c]
		}
		logZ[r] = T(math.Log(float64(sum))) + top
		if o.Given != nil {
			logZ[r], sum = T(o.Given.Float64(r)), 1
			for c, x := range row {
				d[c] = exp(x - logZ[r])
			}
		}
		for c := range d {
			d[c] *= (1 + 2*T(o.ZLoss)*logZ[r]) / sum
		}
		var right T
		if target != device.Elsewhere {
			right = row[target]
			d[target]--
		}
		if o.Softcap > 0 {
			for c, x := range row {
				d[c] *= 1 - x*x/T(o.Softcap*o.Softcap)
			}
		}
		for c := range d {
			if o.Scale != 0 {
				d[c] *= T(o.Scale)
			}
		}
		loss[r] = T(math.Log(float64(sum))) + top - right
	}
	return loss, logZ, dlogits
}
