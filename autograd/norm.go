package autograd

import "anneal/device"

// RMSNorm returns x / sqrt(mean(x²)+eps) · gain over rows: x [N, D] on the residual stream, gain [D], result [N, D].
// It keeps the normalised rows; the result is temporary.
func (t *Tape) RMSNorm(x *Var, gain *Param, eps float64) *Var {
	in := t.value(x)
	rows, d := in.Rows(), in.Cols()
	xhat, rstd := t.keptRef(t.Types.Activation, rows, d), t.keptRef(t.Types.Stat, rows)
	out := t.wrap(t.temp.New(t.Types.Activation, rows, d))
	t.Device.RMSNorm(&out.Value, xhat, rstd, in, &gain.Value, eps)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.x, n.w, n.out = rmsNormBack, rmsNormRecompute, x, gain, out
		n.saved[0], n.saved[1] = xhat, rstd
		out.producer = n
	}
	return out
}

func rmsNormRecompute(t *Tape, n *node) { t.Device.RMSNormAgain(&n.out.Value, n.saved[0], &n.w.Value) }

func rmsNormBack(t *Tape, n *node) {
	dy, _ := t.gradOf(n.out)
	t.Device.RMSNormGrad(t.streamGrad(n.x), t.sumGrad(n.w), dy, n.saved[0], n.saved[1], &n.w.Value)
}

// QKNorm normalises each query and key head of qkv [N, (H+2K)·E] with gains [E], in place; it consumes qkv. It keeps
// the normalised heads, (H+K)·E activations per token.
func (t *Tape) QKNorm(qkv *Var, gainQ, gainK *Param, heads device.Heads, eps float64) *Var {
	rows := qkv.Value.Rows()
	xhat := t.keptRef(t.Types.Activation, rows, (heads.Q+heads.KV)*heads.Size)
	rstd := t.keptRef(t.Types.Stat, rows, heads.Q+heads.KV)
	out := t.wrap(t.consume(qkv))
	t.Device.QKNorm(&out.Value, xhat, rstd, &gainQ.Value, &gainK.Value, heads, eps)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.w2, n.out, n.heads = qkNormBack, qkv, gainQ, gainK, out, heads
		n.saved[0], n.saved[1] = xhat, rstd
	}
	return out
}

func qkNormBack(t *Tape, n *node) {
	g, _ := t.gradOf(n.out)
	t.Device.QKNormGrad(g, t.sumGrad(n.w), t.sumGrad(n.w2), n.saved[0], n.saved[1], &n.w.Value, &n.w2.Value, n.heads)
	n.x.grad = n.out.grad
}
