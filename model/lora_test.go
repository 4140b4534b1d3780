package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/tensor"
)

// adapted returns a model of a config with adapters, whose B is no longer zero.
func adapted(t *testing.T, c Config, policy string) *bench {
	t.Helper()
	x := newBench(t, c, policy, 2, 8)
	for i, p := range x.m.Params() {
		if IsAdapter(p) {
			rng := tensor.NewRNG(9, tensor.PurposeData, uint32(i))
			for j := range p.Value.Len() {
				p.Value.SetFloat64(j, float64(rng.Uint32(uint64(j))%2001)/4000-0.25)
			}
		}
	}
	return x
}

// loraModels are models with adapters of every family that can have them.
func loraModels() map[string]Config {
	llama := small
	llama.LoRARank, llama.LoRAAlpha = 3, 4
	some := llama
	some.TieEmbeddings, some.LoRATargets = false, "attention.qkv, mlp.down"
	gpt2 := llama
	gpt2.Family, gpt2.Activation, gpt2.Positions, gpt2.KVHeads = "gpt2", "gelu", Positions{"learned"}, gpt2.Heads
	anneal := llama
	anneal.Family, anneal.Activation, anneal.QKNorm, anneal.X0Skip = "anneal", "relu2", true, true
	anneal.ValueEmbeddings, anneal.LogitSoftcap, anneal.Bigram, anneal.Smear = "all", 15, 20, true
	gemma := llama
	gemma.Family, gemma.Activation, gemma.QKNorm, gemma.RopeThetaLocal = "gemma3", "geglu", true, 1000
	olmo := llama
	olmo.Family, olmo.QKNorm, olmo.KVHeads = "olmo2", true, olmo.Heads
	gated := llama
	gated.Attention, gated.Positions = seen("linear:gated,gla"), Positions{"none"}
	latent := llama
	latent.KVHeads, latent.HeadDim, latent.KVLoraRank, latent.RopeHeadDim = latent.Heads, 6, 5, 2
	biased := llama
	biased.QKVBias, biased.AttentionSinks = true, true
	return map[string]Config{
		"llama": llama, "some matrices": some, "gpt2": gpt2, "anneal": anneal, "gemma3": gemma, "gated": gated,
		"latent": latent, "biased": biased, "olmo2": olmo,
	}
}

// The gradients of adapters are those of finite differences; frozen matrices and tables have none, nor memory for it.
func TestGradientsOfAdapters(t *testing.T) {
	for name, c := range loraModels() {
		t.Run(name, func(t *testing.T) {
			x := adapted(t, c, "fp64")
			x.gradients()
			checkGradients(t, x)
			adapters := 0
			for _, p := range x.m.Params() {
				if IsAdapter(p) {
					adapters++
				}
				big := p.Role == nn.Matrix || p.Role == nn.Head || p.Name == "embed" || p.Name == "positions" ||
					p.Name == "bigram"
				if p.Frozen == IsAdapter(p) || p.Frozen && big != p.Grad.IsZero() {
					t.Errorf("%s: frozen is %v, without a gradient %v", p.Name, p.Frozen, p.Grad.IsZero())
				}
			}
			matrices := 0
			for _, p := range x.m.Params() {
				if p.Role == nn.Matrix && p.Frozen && c.adapts(p.Name[len("layers.0."):]) {
					matrices++
				}
			}
			if want := 2 * matrices; adapters != want || want < 2*2*c.Layers {
				t.Errorf("%d matrices of adapters, want %d", adapters, want)
			}
		})
	}
}

// Adapters begin as no change at all, and a merged model computes what the one with adapters did.
func TestMergedAdaptersComputeTheSame(t *testing.T) {
	for name, c := range loraModels() {
		plain := c
		plain.LoRARank, plain.LoRAAlpha, plain.LoRATargets = 0, 0, ""
		fresh, without := newBench(t, c, "fp32", 2, 8), newBench(t, plain, "fp32", 2, 8)
		weights := map[string]*nn.Param{}
		for _, p := range without.m.Params() {
			weights[p.Name] = p
		}
		for _, p := range fresh.m.Params() {
			if !IsAdapter(p) {
				copy(p.Value.Raw(), weights[p.Name].Value.Raw())
			}
		}
		fresh.loss()
		without.loss()
		if !bytes.Equal(fresh.b.Losses.Raw(), without.b.Losses.Raw()) {
			t.Errorf("%s: fresh adapters change losses", name)
		}
		x := adapted(t, c, "fp64")
		before := x.loss()
		x.m.Merge(x.dev)
		if after := x.loss(); math.Abs(after-before) > 1e-11*math.Abs(before) || len(x.m.Params()) != len(weights) {
			t.Errorf("%s: the loss is %v with adapters, %v merged, of %d parameters", name, before, after,
				len(x.m.Params()))
		}
		if d := x.m.Config.Differences(plain); d != nil {
			t.Errorf("%s: the merged shape differs by %+v", name, d)
		}
	}
}

// A step takes the memory that was measured, and less of it for gradients; recomputation changes no bit.
func TestAdaptersTakeWhatWasMeasured(t *testing.T) {
	c := loraModels()["llama"]
	for _, policy := range []string{"fp32", "bf16"} {
		x := adapted(t, c, policy)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := filetest.AllocsPerRun(3, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
		whole := newBench(t, small, policy, 2, 8)
		if 3*x.foot.Grads > 2*whole.foot.Grads {
			t.Errorf("%s: gradients take %d bytes, %d without adapters", policy, x.foot.Grads, whole.foot.Grads)
		}
		again := c
		again.Recompute = Layout{Whole: c.Layers, Segment: 1}
		y := adapted(t, again, policy)
		y.gradients()
		for i, p := range x.m.Params() {
			if !p.Frozen && !bytes.Equal(p.Grad.Raw(), y.m.Params()[i].Grad.Raw()) {
				t.Errorf("%s: recomputation changes the gradient of %s", policy, p.Name)
			}
		}
	}
}

// Of frozen matrices the products for their gradients are not made, nor counted.
func TestFLOPsOfAdapters(t *testing.T) {
	c := loraModels()["llama"]
	x, whole := newBench(t, c, "fp32", 1, 8), newBench(t, small, "fp32", 1, 8)
	adapters, frozen := 0.0, float64(whole.m.head.Value.Len())
	for _, p := range x.m.Params() {
		switch {
		case IsAdapter(p):
			adapters += float64(p.Value.Len())
		case p.Role == nn.Matrix:
			frozen += float64(p.Value.Len())
		}
	}
	if got, want := x.m.FLOPsPerToken(8), whole.m.FLOPsPerToken(8)-2*frozen+6*adapters; got != want {
		t.Errorf("%v FLOPs per token, want %v", got, want)
	}
}
