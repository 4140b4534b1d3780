package autograd

// LayerNorm returns (x − mean(x)) / sqrt(var(x)+eps) · gain + gain.Bias over rows: x [N, D] on the residual stream,
// gain and its bias [D], result [N, D]. Like RMSNorm it keeps the normalised rows and one number per row; the result
// is temporary.
func (t *Tape) LayerNorm(x *Var, gain *Param, eps float64) *Var {
	in := t.value(x)
	rows, d := in.Rows(), in.Cols()
	xhat, rstd := t.keptRef(t.Types.Activation, rows, d), t.keptRef(t.Types.Stat, rows)
	out := t.wrap(t.temp.New(t.Types.Activation, rows, d))
	t.Device.LayerNorm(&out.Value, xhat, rstd, in, &gain.Value, &gain.Bias.Value, eps)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.x, n.w, n.out = layerNormBack, layerNormRecompute, x, gain, out
		n.saved[0], n.saved[1] = xhat, rstd
		out.producer = n
	}
	return out
}

func layerNormRecompute(t *Tape, n *node) {
	t.Device.LayerNormAgain(&n.out.Value, n.saved[0], &n.w.Value, &n.w.Bias.Value)
}

func layerNormBack(t *Tape, n *node) {
	dy, _ := t.gradOf(n.out)
	t.Device.LayerNormGrad(t.streamGrad(n.x), t.sumGrad(n.w), t.sumGrad(n.w.Bias), dy, n.saved[0],
		n.saved[1], &n.w.Value)
}
