package model

import (
	"strconv"

	"anneal/autograd"
	"anneal/nn"
)

// newQwen3MoEBlock declares a layer of Qwen3-MoE (Qwen Team 2025, arXiv 2505.09388): Llama with QK-norm, and with
// model.experts feed-forward layers of which a router chooses model.experts_per_token for every token
// (autograd.Tape.Experts).
//
//	model.experts, model.experts_per_token    E and K; no token is dropped
//	model.expert_ffn                          hidden width of each expert
//	model.normalise_experts                   the weights of a token's experts sum to 1
//	model.shared_expert_ffn                   one more expert for all tokens, with a sigmoid gate (Qwen2-MoE, arXiv
//	                                          2407.10671)
//	model.router_aux_loss                     coefficient of the load-balancing loss
//	model.router_z_loss                       coefficient of the router's z-loss
//
// Both losses are means over the layers. The count of parameters includes all experts, the count of operations only
// the K that a token uses. There is no expert parallelism yet: all experts are on one device.
func newQwen3MoEBlock(b *builder) *block {
	a, first := b.attentionBranch()
	second := &branch{before: b.norm("mlp_norm"), eps: b.config.NormEps}
	second.body = b.experts()
	return &block{attention: a, branches: []*branch{first, second}}
}

// experts is the body of a branch of routed experts, which has its own projection.
type experts struct {
	router       *nn.Param // [E, D]
	gateUp, down *nn.Param // [E·2F, D], [E·D, F]
	shared       *shared   // nil for none
	o            autograd.Router
}

// shared is the expert of all tokens.
type shared struct {
	gateUp, down *nn.Param // [2S, D], [D, S]
	gate         *nn.Param // [1, D]
}

// experts declares the experts of a layer. A part of a fused weight is the matrix of one expert.
func (b *builder) experts() *experts {
	c := b.config
	e, d, f := c.Experts, c.Dim, c.ExpertFFN
	x := &experts{router: b.reader("mlp.router", 1, nn.Part{Rows: e})}
	b.part.sumAll(x.router)
	x.gateUp = b.add("experts.gate_up", nn.Matrix, nn.Growth{In: b.width, Out: 1, Depth: 1}, 2*e*f, d)
	x.down = b.add("experts.down", nn.Matrix, nn.Growth{In: 1, Out: 1, Depth: 1}, e*d, f)
	if b.gateUp == nil {
		in, out := c.std(inner, f, d, x.gateUp.Growth), c.std(output, d, f, x.down.Growth)
		if c.zeroes("residual") {
			out = 0
		}
		b.gateUp = expertParts(e, nn.Part{Name: "gate", Rows: f, Std: in}, nn.Part{Name: "up", Rows: f, Std: in})
		b.down = expertParts(e, nn.Part{Name: "down", Rows: d, Std: out})
	}
	x.gateUp.Parts, x.down.Parts = b.gateUp, b.down
	b.part.cutRows(x.gateUp, 1, b.gateUp)
	b.part.cutCols(x.down, 1)
	x.gateUp.Share, x.down.Share = c.expertShare(), c.expertShare()
	for _, p := range []*nn.Param{x.router, x.gateUp, x.down} {
		p.FP8Products = false // products by expert have no scales
	}
	if s := c.SharedExpertFFN; s > 0 {
		x.shared = &shared{gateUp: b.columnParallel("shared.gate_up",
			1, 1, nn.Part{Name: "gate", Rows: s}, nn.Part{Name: "up", Rows: s})}
		x.shared.down = b.rowParallel("shared.down", s, 1, 1)
		x.shared.gate = b.reader("shared.gate", 1, nn.Part{Rows: 1})
		b.part.sumAll(x.shared.gate)
		x.shared.gate.FP8Products = false
	}
	x.o = autograd.Router{K: c.ExpertsPerToken, Normalise: c.NormaliseExperts}
	x.o.Balance, x.o.ZLoss = c.RouterAuxLoss/float64(c.Layers), c.RouterZLoss/float64(c.Layers)
	return x
}

// expertParts returns the parts of e experts, called 0.gate, 0.up, 1.gate and so on.
func expertParts(e int, parts ...nn.Part) (list []nn.Part) {
	for i := range e {
		for _, p := range parts {
			p.Name = strconv.Itoa(i) + "." + p.Name
			list = append(list, p)
		}
	}
	return list
}

// Forward returns the sum of the experts' results [N, D] for the normalised stream h [N, D].
func (x *experts) Forward(t *autograd.Tape, h *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	o := x.o
	if seq.Plain {
		o.Balance, o.ZLoss = 0, 0
	}
	logits := t.Gates(h, &x.router.Param)                        // [N, E]
	y := t.Experts(h, logits, &x.gateUp.Param, &x.down.Param, o) // [N, D]
	if x.shared == nil {
		return y
	}
	gu := t.Linear(h, &x.shared.gateUp.Param)                  // [N, 2S]
	s := t.Linear(t.SwiGLU(gu), &x.shared.down.Param)          // [N, D]
	return t.AddShared(y, s, t.Gates(h, &x.shared.gate.Param)) // [N, D]
}

// expertShare returns the share of the experts' parameters that one token uses.
func (c Config) expertShare() float64 { return float64(c.ExpertsPerToken) / float64(c.Experts) }
