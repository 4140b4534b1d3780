package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Mixture of experts (Shazeer et al. 2017, arXiv 1701.06538): every token goes through K of E feed-forward layers,
// which a router chooses.
//
//	p = softmax(router)         chosen: the K largest, among equals the lower number first
//	y = Σ_j w_j·down_j(swiglu(gate_up_j(h)))        w: their p, divided by their sum with Normalise
//
// No token is dropped, however many choose an expert. Rows are sorted by expert and multiplied expert by expert, so
// time and memory are those of N·K rows for any choice. The results of a token are added in the order of its choices,
// the most probable first, so the bits do not depend on the number of threads.
//
// Two losses keep routers healthy. They enter gradients only; Tape.Routing has their values.
//
//	Balance  E·Σ_i f_i·P_i, f_i = choices of expert i per token, P_i = mean p_i (Fedus et al. 2021, arXiv 2101.03961)
//	ZLoss    mean log²Z, Z = Σ exp(router)                                      (Zoph et al. 2022, arXiv 2202.08906)
//
// Balance is K if all experts are chosen equally often. Both are computed for one layer and one micro-batch, over all
// its tokens, and count once per target, like the cross-entropy (Tape.Untargeted). Ranks that share rows (Context)
// exchange how often they chose each expert.
//
// Memory: 2F activations for each of the N·K rows are kept, and 3·K + 2 numbers per token. Temporary are D activations
// for each row in forward, and D + 2F in backward.

// A Router describes how tokens choose experts.
type Router struct {
	K              int  // experts per token
	Normalise      bool // weights of a token sum to 1
	Balance, ZLoss float64
}

// Routing sums the losses of routers over the tokens and layers of the forward passes since Reset: without their
// coefficients, and only in training.
type Routing struct {
	Balance, ZLoss float64
	Tokens         int // added up over the layers that were run: stochastic depth drops some
}

// Add adds the sums of another forward pass.
func (r *Routing) Add(o Routing) {
	r.Balance += o.Balance
	r.ZLoss += o.ZLoss
	r.Tokens += o.Tokens
}

// routed is what Experts keeps for backward. counts are those of all ranks that share rows.
type routed struct {
	Router
	weights, logZ                 tensor.Tensor     // [N, K], [N]
	experts, order, place, counts tensor.Tensor     // [N, K], [N·K], [N·K], [E]
	gu                            tensor.Tensor     // [N·K, 2F]
	rows, sums                    tensor.Tensor     // [E], [E]: choices and Σ p, in host memory
	all, theirs                   tensor.Tensor     // [E], [E]: choices of all ranks that share rows, and of one rank
	tokens                        int               // of all of them
	list                          [1]*tensor.Tensor // logZ
}

// Experts returns the weighted sum of each token's experts: h [N, D], router [N, E] in Types.Stat, gateUp [E·2F, D]
// holds gate then up of each expert, down [E·D, F], result [N, D]. The result is in Types.Stream. It lives until the
// end of the block and is not recomputed, because no backward reads it.
func (t *Tape) Experts(h, router *Var, gateUp, down *Param, o Router) *Var {
	in, logits := t.value(h), t.value(router)
	out := t.wrap(t.temp.New(t.Types.Stream, in.Rows(), in.Cols()))
	out.inBlock = true
	r := t.route(logits, o)
	f := down.Value.Cols()
	r.gu = t.kept(t.Types.Activation, in.Rows()*o.K, 2*f)

	mark := t.temp.Mark()
	x := t.ref(t.temp.New(t.Types.Activation, in.Rows()*o.K, in.Cols())) // [N·K, D]
	t.Device.TakeRows(x, in, &r.order, r.K)
	t.perExpert(r, &r.gu, x, t.operand(gateUp), device.NT) // [N·K, 2F]
	act := t.ref(t.temp.New(t.Types.Activation, r.gu.Rows(), f))
	t.Device.SwiGLU(act, &r.gu)                        // [N·K, F]
	t.perExpert(r, x, act, t.operand(down), device.NT) // [N·K, D]
	t.Device.MixRows(&out.Value, x, &r.weights, &r.place, false)
	t.temp.Release(mark)

	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.w, n.w2, n.out, n.routed = expertsBack, h, router, gateUp, down, out, r
	}
	return out
}

// route chooses the experts of each token, and waits until the host has the number of rows of each expert.
func (t *Tape) route(logits *tensor.Tensor, o Router) *routed {
	n, e := logits.Rows(), logits.Cols()
	r := t.newRouted(e)
	r.Router, r.list[0] = o, &r.logZ
	r.weights, r.logZ = t.kept(t.Types.Stat, n, o.K), t.kept(t.Types.Stat, n)
	r.experts, r.order, r.place = t.kept(tensor.I32, n, o.K), t.kept(tensor.I32, n*o.K), t.kept(tensor.I32, n*o.K)
	r.counts = t.kept(tensor.I32, e)
	mark := t.temp.Mark()
	sums := t.ref(t.temp.New(t.Types.Stat, e))
	t.Device.Zero(sums)
	t.Device.Route(&r.weights, &r.experts, &r.logZ, sums, logits, o.Normalise)
	t.Device.Dispatch(&r.order, &r.place, &r.counts, &r.experts)
	t.Device.Read(r.rows.Raw(), &r.counts)
	if t.train {
		t.countAll(r, n)
	}
	if t.train && !t.rerunning {
		t.Device.Read(r.sums.Raw(), sums)
		for i, rows := range r.all.I32() {
			t.Routing.Balance += float64(rows) * r.sums.Float64(i) * float64(e) / float64(r.tokens)
		}
		t.Routing.ZLoss += t.squares.Sum(t.Device, r.list[:]...)
		t.Routing.Tokens += n
	}
	t.temp.Release(mark)
	r.checkRows(n * o.K)
	return r
}

// countAll counts the choices of all tokens of whole rows; this rank has n tokens of them. Backward reads these counts
// and so includes the choices of the other ranks.
func (t *Tape) countAll(r *routed, n int) {
	copy(r.all.Raw(), r.rows.Raw())
	if r.tokens = n; t.Context == nil || t.Context.Size() == 1 {
		return
	}
	r.tokens *= t.Context.Size()
	mark, me := t.temp.Mark(), t.Context.Rank()
	out, room := t.parcels(t.Context.Size())
	for p := range out {
		out[p] = r.counts
		if p != me && !t.Context.InPlace() {
			room[p] = t.temp.New(tensor.I32, r.counts.Len())
		}
	}
	for p, counts := range t.Context.Exchange(out, room) {
		if p == me {
			continue
		}
		t.Device.Read(r.theirs.Raw(), &counts)
		for i, rows := range r.theirs.I32() {
			r.all.I32()[i] += rows
		}
	}
	t.Context.Release()
	t.Device.Write(&r.counts, r.all.Raw())
	t.temp.Release(mark)
}

// newRouted returns a routed for e experts that lives until Reset.
func (t *Tape) newRouted(e int) *routed {
	if t.routedN == len(t.routes) {
		t.routes = append(t.routes, new(routed))
	}
	r := t.routes[t.routedN]
	t.routedN++
	if r.rows.IsZero() || r.rows.Len() != e || r.sums.DType() != t.Types.Stat {
		r.rows, r.all, r.theirs = *tensor.Of(make([]int32, e)), *tensor.Of(make([]int32, e)),
			*tensor.Of(make([]int32, e))
		r.sums = tensor.View(t.Types.Stat, make([]byte, e*t.Types.Stat.Size()), e)
	}
	return r
}

// checkRows gives all n rows to the first expert if the counts do not sum to n, which happens if the device does not
// compute or has failed. Memory does not depend on the counts.
func (r *routed) checkRows(n int) {
	rows, sum := r.rows.I32(), 0
	for _, count := range rows {
		if count < 0 {
			sum += n + 1
		}
		sum += max(0, int(count))
	}
	if sum != n {
		clear(rows)
		rows[0] = int32(n)
	}
}

// perExpert writes the products of each expert's rows of x [N·K, I] with its part of w, in the given form, to dst [N·K,
// O]: w [E·O, I] with NT, [E·I, O] with NN.
func (t *Tape) perExpert(r *routed, dst, x, w *tensor.Tensor, form device.Form) {
	size := w.Rows() / r.rows.Len()
	refs, from := t.tensorN, 0
	for e, rows := range r.rows.I32() {
		if rows == 0 {
			continue
		}
		t.tensorN = refs // the headers of each expert are reused
		to := from + int(rows)
		t.Device.MatMul(t.ref(dst.Slice(from, to)), t.ref(x.Slice(from, to)), t.ref(w.Slice(e*size, (e+1)*size)), form,
			device.MatMulOptions{Operand: t.Types.Operand})
		from = to
	}
	t.tensorN = refs
}

// expertGrads adds dyᵀ·x of each expert's rows to its part of p's gradient: dy [N·K, O], x [N·K, I], p [E·O, I].
func (t *Tape) expertGrads(r *routed, p *Param, dy, x *tensor.Tensor) {
	size := dy.Cols()
	refs, from := t.tensorN, 0
	for e, rows := range r.rows.I32() {
		t.tensorN = refs
		g, to := t.ref(p.Grad.Slice(e*size, (e+1)*size)), from+int(rows)
		switch {
		case rows > 0:
			t.Device.MatMul(g, t.ref(dy.Slice(from, to)), t.ref(x.Slice(from, to)), device.TN,
				device.MatMulOptions{Operand: t.Types.Operand, Accumulate: p.written})
		case !p.written:
			t.Device.Zero(g)
		}
		from = to
	}
	t.tensorN = refs
	p.written = true
}

func expertsBack(t *Tape, n *node) {
	r, dy, h, logits := n.routed, &n.out.grad, t.value(n.x), t.value(n.y)
	dh, add := t.gradOf(n.x)
	dlogits := t.onlyGrad(n.y)
	rows, d, f := r.order.Len(), dy.Cols(), n.w2.Value.Cols()

	mark := t.temp.Mark()
	dweights := t.ref(t.temp.New(t.Types.Stat, r.weights.Shape()...)) // [N, K]
	x := t.ref(t.temp.New(t.Types.Activation, rows, d))               // [N·K, D]: dy, h, then dh, of each row
	act, dact := t.ref(t.temp.New(t.Types.Activation, rows, f)), t.ref(t.temp.New(t.Types.Activation, rows, f))
	t.Device.TakeRows(x, dy, &r.order, r.K)
	t.perExpert(r, dact, x, &n.w2.Value, device.NN) // [N·K, F]  before the weights
	t.Device.SwiGLU(act, &r.gu)                     // [N·K, F]
	t.Device.WeighRows(dweights, dact, act, &r.weights, &r.order)
	t.expertGrads(r, n.w2, x, act)
	t.Device.SwiGLUGrad(&r.gu, nil, dact, &r.gu) // [N·K, 2F]  in place
	t.Device.TakeRows(x, h, &r.order, r.K)
	t.expertGrads(r, n.w, &r.gu, x)
	t.perExpert(r, x, &r.gu, &n.w.Value, device.NN)
	t.Device.MixRows(dh, x, nil, &r.place, add) // [N, D]

	scale := t.LossScale
	if scale == 0 {
		scale = 1
	}
	scale *= 1 - t.Untargeted
	if t.Tensor != nil && t.Tensor.Rank() > 0 {
		scale = 0 // the losses are the same on all peers, whose gradients are summed
	}
	o := device.RouteOptions{Normalise: r.Normalise, ZLoss: scale * r.ZLoss}
	o.Balance = scale * r.Balance * float64(logits.Cols()) / float64(r.tokens)
	t.Device.RouteGrad(dlogits, dweights, &r.weights, &r.experts, &r.logZ, &r.counts, logits, o)
	t.temp.Release(mark)
}
