package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/filetest"
	"anneal/precision"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// twins returns a generator with a cache and one without, for one random model.
func twins(t interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}, dev *cpu.Device, c Config, policy string) (cached, plain *Generator) {
	t.Helper()
	name, scaling, _ := strings.Cut(policy, " ")
	p, err := precision.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	if scaling != "" {
		p.FP8 = &precision.FP8{Blocks: precision.BlocksOf(scaling), Attention: true} // caches keep FP8 keys
	}
	params, err := tensor.NewArena("parameters", Measure(c, p, 1, 1, false).Params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { params.Close() })
	m := New(c, MemoryOf(device.Host{}, p, params, nil))
	m.Init(3)
	stir(m)
	make := func(cached bool) *Generator {
		g, err := makeGenerator(m, p, dev, cached)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	return make(m.remembers(p)), make(false)
}

// drawDecoder draws a small model: any family, heads, positions, patterns of attention.
func drawDecoder(t *rapid.T) Config {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	kv, group := rapid.IntRange(1, 2).Draw(t, "K"), rapid.IntRange(1, 3).Draw(t, "H/K")
	if kv*group == 1 { // strided heads take turns
		group = 2
	}
	c := Config{
		Family: pick("family", "llama", "anneal", "gpt2", "olmo2", "gemma2", "gemma3", "qwen3_moe"),
		Layers: rapid.IntRange(1, 3).Draw(t, "layers"), Dim: 32, Heads: kv * group, KVHeads: kv,
		HeadDim: rapid.SampledFrom([]int{4, 10, 16}).Draw(t, "E"), FFN: 24,
		Context: rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(100, 300)).Draw(t, "context"), Vocab: 61,
		TieEmbeddings: rapid.Bool().Draw(t, "tied"), QKNorm: rapid.Bool().Draw(t, "QK-norm"), RopeTheta: 10000,
		NormEps: 1e-5, InitStd: 0.3,
		Positions: schemes(pick("positions", "rope", "alibi", "learned", "none", "rope,none,alibi")),
		Attention: seen(pick("attention", "", "window:9", "window:30,window:3,full", "longformer:8:4",
			"longformer:8:4:dilation=2/3:heads=1", "longnet:16/1:64/2:depth", "bigbird:1:2:1:8:7", "strided:16",
			"fixed:16:4", "longnet:16/1:64/2", "window:5,fixed:8:2", "linear",
			"linear:gated", "linear:gated,window:9", "delta", "delta:gated,full",
			"gla", "gla,linear")),
	}
	if c.Family == "olmo2" {
		c.KVHeads = c.Heads
	}
	c.ShortConv = rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "short convolutions")
	c.AttentionSinks = rapid.Bool().Draw(t, "sinks")
	c.QKVBias = c.Family != "gpt2" && rapid.Bool().Draw(t, "biases")
	if !c.alibi() && rapid.Bool().Draw(t, "softcap of scores") {
		c.AttentionSoftcap = 0.5
	}
	if rapid.Bool().Draw(t, "softcap") {
		c.LogitSoftcap = 5
	}
	if rope := c.Positions.String() == "rope" && !c.hasLinear(); rope && c.Family == "llama" && c.HeadDim > 4 {
		c.KVHeads, c.KVLoraRank, c.RopeHeadDim, c.QKNorm = c.Heads, 6, 4, false
	}
	if c.Family == "qwen3_moe" {
		c.Experts, c.ExpertsPerToken, c.ExpertFFN, c.NormaliseExperts = 4,
			rapid.IntRange(1, 3).Draw(t, "experts per token"), 8, true
		c.SharedExpertFFN = rapid.SampledFrom([]int{0, 12}).Draw(t, "shared expert")
	}
	if c.LongformerGlobalProjections = rapid.Bool().Draw(t, "global projections"); c.hasGlobalTokens() {
		c.AttentionSinks, c.KVLoraRank = false, 0
	}
	if c.Family == "anneal" {
		c.Activation, c.ValueEmbeddings, c.X0Skip = pick("activation", "swiglu", "relu2"),
			pick("value embeddings", "none", "alternate", "all"), rapid.Bool().Draw(t, "x0")
		c.Bigram, c.Smear = rapid.SampledFrom([]int{0, 50}).Draw(t, "bigrams"), rapid.Bool().Draw(t, "smear")
		if c.hasGlobalTokens() {
			c.ValueEmbeddings = "none"
		}
	}
	return c
}

// Whatever was asked for before, a generator with a cache gives the logits of one without, bit for bit: sequences that
// grow by one token or by many, that outgrow the context, that go back and take another turn, or have nothing in
// common with what is cached.
func TestCachedLogitsEqualUncached(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, policy := range []string{"bf16", "fp32", "fp16", "fp8", "fp8 mx"} {
		t.Run(policy, rapid.MakeCheck(func(t *rapid.T) {
			c := drawDecoder(t)
			cached, plain := twins(t, dev, c, policy)
			defer cached.Close()
			defer plain.Close()
			var ids []int32
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				ids = ids[:rapid.OneOf(rapid.Just(len(ids)), rapid.IntRange(0, len(ids))).Draw(t, "kept")]
				n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(1, c.Context+20)).Draw(t, "new")
				if len(ids)+n == 0 {
					n = 1
				}
				for range n {
					ids = append(ids, int32(rapid.IntRange(0, c.Vocab-1).Draw(t, "token")))
				}
				want := plain.Logits(ids)
				if got := cached.Logits(ids); !bytes.Equal(got.Raw(), want.Raw()) {
					t.Fatalf("%s %+v: after %d tokens, %d of them new, other logits than without a cache",
						policy, c, len(ids), n)
				}
			}
		}))
	}
}

// Generation token for token, over more than the ring of a window holds and more than the context.
func TestGenerationWithACacheIsThatWithout(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := small
	c.Context, c.Attention = 100, seen("window:20,full")
	for _, policy := range []string{"bf16", "fp32"} {
		cached, plain := twins(t, dev, c, policy)
		for _, s := range []Sampling{{}, {Temperature: 1, Seed: 5}} {
			prompt := []int32{1, 2, 3, 4, 5}
			got, want := continued(cached, prompt, 2*c.Context, s), continued(plain, prompt, 2*c.Context, s)
			if !slices.Equal(got, want) {
				t.Errorf("%s %+v: %v, without a cache %v", policy, s, got, want)
			}
		}
	}
}

// A sequence that was cut back has overwritten, in a ring, more than its length tells.
func TestRingKnowsWhatWasOverwritten(t *testing.T) {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := small
	c.Context, c.Attention = 300, seen("window:9") // 72 rows
	cached, plain := twins(t, dev, c, "fp32")
	ids := make([]int32, 200)
	for i := range ids {
		ids[i] = int32(i % c.Vocab)
	}
	for _, n := range []int{200, 196, 134} {
		ids[n-1] = 30 - ids[n-1]%2 // another token than before
		want := plain.Logits(ids[:n])
		if got := cached.Logits(ids[:n]); !bytes.Equal(got.Raw(), want.Raw()) {
			t.Errorf("cut back to %d tokens: other logits than without a cache", n)
		}
	}
}

// Where all queries of a layer see W tokens at most, the cache holds W+63, however long the context; elsewhere all of
// it.
func TestWindowLayersKeepTheWindow(t *testing.T) {
	c := small
	c.Layers, c.Context, c.Attention = 3, 1000, seen("window:50,window:100,full")
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	row := 2 * c.KVHeads * c.HeadDim * 2
	aligned := func(n int) int { return (n + tensor.Align - 1) &^ (tensor.Align - 1) }
	want := aligned(113*row) + aligned(163*row) + aligned(1000*row)
	if got := measurePasses(c, p, 1, min(c.Context, maxChunk), 1).Cache; got != want {
		t.Errorf("the cache takes %d bytes, want %d", got, want)
	}
}

// A layer of linear attention keeps a state and a chunk of rows, however long the context.
func TestLinearLayersKeepTheState(t *testing.T) {
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, gates := range map[string]int{"linear": 0, "linear:gated": 4 * 64 * small.KVHeads} {
		c := small
		c.Layers, c.Context, c.Attention = 1, 1000, seen(pattern)
		want := 2*64*2*c.KVHeads*c.HeadDim + 4*c.KVHeads*(c.HeadDim+1)*c.HeadDim + gates
		if got := measurePasses(c, p, 1, min(c.Context, maxChunk), 1).Cache; got < want || got > want+3*tensor.Align {
			t.Errorf("%s: the cache takes %d bytes, want %d", pattern, got, want)
		}
	}
	gla := small
	gla.Layers, gla.Context, gla.Attention = 1, 1000, seen("gla")
	want := gla.KVHeads * gla.HeadDim * (2*64*2 + 4*4*gla.HeadDim + 4*64)
	if got := measurePasses(gla, p, 1, min(gla.Context, maxChunk), 1).Cache; got < want || got > want+3*tensor.Align {
		t.Errorf("gla: the cache takes %d bytes, want %d", got, want)
	}
	for pattern, gates := range map[string]int{"delta": 1, "delta:gated": 2} {
		c := small
		c.Layers, c.Context, c.Attention = 1, 1000, seen(pattern)
		want := 4 * c.KVHeads * ((c.HeadDim+128)*c.HeadDim + 64*gates)
		if got := measurePasses(c, p, 1, min(c.Context, maxChunk), 1).Cache; got < want || got > want+2*tensor.Align {
			t.Errorf("%s: the cache takes %d bytes, want %d", pattern, got, want)
		}
	}
}

// What a sequence longer than the context shows the model is its end: whole when it just fits, and never less than
// three quarters.
func TestSightIsAFunctionOfTheLength(t *testing.T) {
	ids := make([]int32, 5000)
	for _, context := range []int{1, 2, 3, 8, 100, 1024} {
		starts := map[int]bool{}
		for n := range ids {
			seen := InSight(ids[:n], context)
			if n <= context && len(seen) != n || n > context && (len(seen) > context || 4*len(seen) < 3*context) {
				t.Fatalf("context %d: %d of %d tokens are in sight", context, len(seen), n)
			}
			starts[n-len(seen)] = true
		}
		if most := len(ids)/max(context/4, 1) + 1; len(starts) > most {
			t.Errorf("context %d: the start moves %d times, want at most %d", context, len(starts), most)
		}
	}
}

// The measure runs the generator's own code: what it foresees is what is used, prompt and all.
func TestGenerationUsesTheMemoryThatIsMeasured(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := small
	c.Context = 300
	for _, policy := range []string{"bf16", "fp32"} {
		cached, plain := twins(t, dev, c, policy)
		for _, g := range []*Generator{cached, plain} {
			ids := make([]int32, c.Context)
			for n := range 3 {
				g.Logits(ids[:c.Context-2+n])
			}
			for _, a := range g.arenas {
				if a.Peak() != a.Size() && a.Size()-a.Peak() >= 4096 {
					t.Errorf("%s: %s: %d bytes used of %d", policy, a.Name(), a.Peak(), a.Size())
				}
			}
			if n := filetest.AllocsPerRun(3, func() { g.Logits(ids) }); n > 1 { // the batch
				t.Errorf("%s: %v allocations per token", policy, n)
			}
		}
		if a, b := fmt.Sprint(cached.Bytes()), fmt.Sprint(plain.Bytes()); a == b {
			t.Errorf("%s: the memory of a generator with a cache is that of one without", policy)
		}
	}
}
