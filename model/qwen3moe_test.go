package model

import (
	"math"
	"runtime"
	"testing"

	"anneal/nn"
	"anneal/precision"
)

// routed is the smallest Qwen3-MoE, with a shared expert.
var routed = func() Config {
	c := small
	c.Family, c.QKNorm = "qwen3_moe", true
	c.Experts, c.ExpertsPerToken, c.ExpertFFN, c.SharedExpertFFN, c.NormaliseExperts = 5, 2, 6, 10, true
	c.RouterAuxLoss, c.RouterZLoss = 0.02, 0.01
	return c
}()

// Logits, loss, the losses of the routers and every gradient are those of Qwen3MoeForCausalLM for the same weights, in
// float64. Its load-balancing loss mixes the counts of all layers; here it is the mean over the layers.
func TestQwen3MoEIsThatOfTransformers(t *testing.T) {
	checkRouted(t, "qwen3_moe.json", routed)
}

// Mixtral is Qwen3-MoE without QK-norm, with experts of the width of its feed-forward layer.
func TestMixtralIsThatOfTransformers(t *testing.T) {
	c := routed
	c.QKNorm = false
	checkRouted(t, "mixtral.json", c)
}

// checkRouted compares a model with experts and its routers' losses with a fixture.
func checkRouted(t *testing.T, fixture string, c Config) {
	t.Helper()
	g := readGolden(t, fixture)
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab, c.TieEmbeddings, c.RopeTheta = 4, 12, 20, 10, 13, false, 500
	c.SharedExpertFFN, c.RouterAuxLoss, c.RouterZLoss = 0, 0.3, 0.2
	x := g.bench(t, c, c.Context)
	g.fill(t, x)
	x.gradients()
	n := float64(x.b.Tokens.Len())
	for _, l := range []struct {
		name string
		got  float64
		want []float64
	}{{"balance", x.tape.Routing.Balance, g.Balance}, {"z", x.tape.Routing.ZLoss, g.Z}} {
		want := 0.0
		for _, v := range l.want {
			want += v * n
		}
		if len(l.want) != c.Layers || math.Abs(l.got-want) > 1e-10*want {
			t.Errorf("%s is %v, want %v", l.name, l.got, want)
		}
	}
	g.check(t, x)
}

// Without the routers' losses gradients are the slopes of the cross-entropy. With them that is shown in package
// autograd, where the losses are part of what is differentiated.
func TestQwen3MoEGradientsMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"shared expert":  func(*Config) {},
		"three, untied":  func(c *Config) { c.ExpertsPerToken, c.NormaliseExperts, c.TieEmbeddings = 3, false, false },
		"recomputed":     func(c *Config) { c.Recompute = Layout{Whole: 1, Segment: 1, Attention: 1} },
		"no shared, one": func(c *Config) { c.SharedExpertFFN, c.ExpertsPerToken, c.NormaliseExperts = 0, 1, false },
	} {
		t.Run(name, func(t *testing.T) {
			c := routed
			c.RouterAuxLoss, c.RouterZLoss = 0, 0
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestQwen3MoEFootprintIsExactAndStepsAllocateNothing(t *testing.T) {
	checkFootprint(t, routed)
	c := routed
	c.Layers, c.Recompute = 5, Layout{Whole: 3, Segment: 2, Attention: 1}
	checkFootprint(t, c)
}

func TestQwen3MoEKeepsItsBits(t *testing.T) {
	for _, policy := range precision.Names() {
		c := routed
		c.Layers, c.Dropout = 5, 0.2
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, routed, policy)
	}
}

// Every expert starts like a feed-forward layer of its own, and is a part of its own to optimizers.
func TestExpertsAreParts(t *testing.T) {
	c := routed
	c.Dim, c.ExpertFFN, c.Init = 128, 96, "he"
	x := newBench(t, c, "fp32", 1, 8)
	for _, p := range x.m.Params() {
		parts, rows, fanIn := 0, 0, 0
		switch p.Name {
		case "layers.0.experts.gate_up":
			parts, rows, fanIn = 2*c.Experts, c.ExpertFFN, c.Dim
		case "layers.0.experts.down":
			parts, rows, fanIn = c.Experts, c.Dim, c.ExpertFFN
		default:
			continue
		}
		if len(p.Parts) != parts || p.Role != nn.Matrix {
			t.Fatalf("%s has %d parts, want %d", p.Name, len(p.Parts), parts)
		}
		for i, part := range p.Parts {
			sum := 0.0
			for _, v := range p.Value.F32()[i*rows*fanIn : (i+1)*rows*fanIn] {
				sum += float64(v) * float64(v)
			}
			std, want := math.Sqrt(sum/float64(rows*fanIn)), math.Sqrt(2/float64(fanIn))
			if part.Rows != rows || math.Abs(std/want-1) > 0.05 {
				t.Errorf("%s: part %s has %d rows with a deviation of %v, want %d with %v",
					p.Name, part.Name, part.Rows, std, rows, want)
			}
		}
	}
}

// A plan of an absurd model comes at once: what it takes follows the layers and the experts, not their product.
func TestManyLayersOfManyExpertsAreOutlinedAtOnce(t *testing.T) {
	c := routed
	c.Layers, c.Experts = 1000, 4096
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Outline(c, precision.Policy{})
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
		t.Errorf("the outline takes %d MiB", got)
	}
}

// The published sizes of Qwen3-30B-A3B and Qwen3-235B-A22B, and the operations of the parameters in use.
func TestParametersOfQwen3MoE(t *testing.T) {
	for _, k := range []struct {
		name                        string
		layers, dim, heads, kv, ffn int
		want, active                int64
	}{
		{"qwen3-30b-a3b", 48, 2048, 32, 4, 768, 30_532_122_624, 3_353_032_704},
		{"qwen3-235b-a22b", 94, 4096, 64, 4, 1536, 235_093_634_560, 22_190_763_520},
	} {
		m := Outline(Config{
			Family: "qwen3_moe", QKNorm: true, Layers: k.layers, Dim: k.dim, Heads: k.heads, KVHeads: k.kv,
			HeadDim: 128, FFN: k.ffn, Experts: 128, ExpertsPerToken: 8, ExpertFFN: k.ffn, Context: 64, Vocab: 151936,
			RopeTheta: 1e6, NormEps: 1e-6,
		}, precision.Policy{})
		if m.Count() != k.want || m.Active() != k.active {
			t.Errorf("%s: %d parameters, %d active, want %d and %d", k.name, m.Count(), m.Active(), k.want, k.active)
		}
		d := float64(k.dim)
		attention := 2 * d * float64(2*k.heads+2*k.kv) * 128
		forward := float64(k.layers)*(attention+2*128*d+2*8*3*d*float64(k.ffn)+2*64*float64(k.heads)*128) + 2*d*151936
		if got := m.FLOPsPerToken(64); math.Abs(got-3*forward) > 1e-9*got {
			t.Errorf("%s: %g FLOPs per token, product by product %g", k.name, got, 3*forward)
		}
	}
}
