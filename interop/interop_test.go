package interop

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/hf"
	"anneal/model"
	"anneal/nn"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tensor"
)

var keep = flag.String("keep", "",
	"leave the exports of TestExportGivesBackWhatWasImported here, for ../hf/testdata/check_export.py")

// models are directories that transformers wrote, with what it computed from them.
var models = []string{
	"llama", "qwen3", "mistral", "windows", "linear", "yarn", "llama3", "longrope", "gpt2", "gpt2-untied", "gemma2",
	"gemma3", "qwen3_moe", "qwen2", "mixtral", "olmo2", "phi3",
}

func golden(name string) string { return filepath.Join("..", "hf", "testdata", name) }

// An imported model computes what transformers does: the logits after every prefix, in float64. transformers computes
// norms and RoPE in float32 even then, hence the tolerance.
func TestImportedModelsAnswerAsTransformers(t *testing.T) {
	fp64, err := precision.Lookup("fp64")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, name := range models {
		var want struct {
			IDs    []int32     `json:"ids"`
			Logits [][]float64 `json:"logits"`
		}
		text, err := os.ReadFile(filepath.Join(golden(name), "logits.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		m, params, err := Load(golden(name), fp64, device.Host{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		worst := 0.0
		for n := range want.IDs {
			got := logits(t, dev, m, fp64, want.IDs[:n+1])
			for i, z := range want.Logits[n] {
				worst = max(worst, math.Abs(got[i]-z))
			}
		}
		params.Close()
		if !(worst < 5e-6) {
			t.Errorf("%s: a logit is %g off, want less than 5e-6", name, worst)
		}
	}
}

// import(export(import(m))) has the config of m, and every weight bit for bit.
func TestExportGivesBackWhatWasImported(t *testing.T) {
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range models {
		was := opened(t, golden(name))
		m, params, err := Load(golden(name), fp32, device.Host{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := ToHF(m.Config, tokensOf(was.Config), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tok, err := os.ReadFile(filepath.Join(golden(name), "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(*keep, name)
		if *keep == "" {
			out = filepath.Join(t.TempDir(), name)
		}
		if err := hf.Write(out, c, hf.Export{TokenizerJSON: tok, Tensors: Tensors(m, safetensors.F32)}); err != nil {
			t.Fatal(err)
		}
		params.Close()
		is := opened(t, out)
		if !reflect.DeepEqual(is.Config, was.Config) {
			t.Errorf("%s: came back as %+v, want %+v", name, is.Config, was.Config)
		}
		for _, spec := range was.Config.Tensors() {
			if x, y := valuesOf(t, was, spec), valuesOf(t, is, spec); !slices.Equal(x, y) {
				t.Errorf("%s: %s begins with %v, want %v", name, spec.Name, y[:2], x[:2])
			}
		}
	}
}

// logits returns what a model computes after ids.
func logits(t *testing.T, dev device.Device, m *model.Decoder, p precision.Policy, ids []int32) []float64 {
	t.Helper()
	g, err := model.NewGenerator(m, p, dev)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	z := g.Logits(ids)
	if err := dev.Wait(); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, z.Len())
	for i := range out {
		out[i] = z.Float64(i)
	}
	return out
}

func valuesOf(t *testing.T, m *hf.Model, spec hf.Spec) []float32 {
	t.Helper()
	n := 1
	for _, d := range spec.Shape {
		n *= d
	}
	x := make([]float32, n)
	if err := m.Read(spec.Name, x); err != nil {
		t.Fatal(err)
	}
	return x
}

func opened(t *testing.T, dir string) *hf.Model {
	t.Helper()
	m, err := hf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func tokensOf(c hf.Config) hf.Tokens {
	switch c := c.(type) {
	case *hf.LlamaConfig:
		return c.Tokens
	case *hf.Gemma2Config:
		return c.Tokens
	case *hf.Gemma3Config:
		return c.Tokens
	case *hf.Qwen3MoEConfig:
		return c.Tokens
	case *hf.MixtralConfig:
		return c.Tokens
	case *hf.Olmo2Config:
		return c.Tokens
	case *hf.Phi3Config:
		return c.Tokens
	}
	return c.(*hf.GPT2Config).Tokens
}

var smallGPT2 = model.Config{
	Family: "gpt2", Activation: "gelu", Layers: 2, Dim: 32, Heads: 2, KVHeads: 2, HeadDim: 16, FFN: 128,
	Context: 32, Vocab: 64, Positions: schemes("learned"), NormEps: 1e-5,
}

// What no format of Hugging Face says is refused by name.
func TestExportRefusesWhatTheFormatsCannotSay(t *testing.T) {
	for key, change := range map[string]func(*model.Config){
		"model.family = another":   func(c *model.Config) { c.Family = "another" },
		"model.logit_softcap = 30": func(c *model.Config) { c.LogitSoftcap = 30 },
		"model.positions = rope,alibi": func(c *model.Config) {
			c.Positions = schemes("rope,alibi")
		},
		"model.positions = none": func(c *model.Config) {
			c.Positions = schemes("none")
		},
		"model.positions = learned": func(c *model.Config) {
			c.Positions = schemes("learned")
		},
		"model.activation = relu2": func(c *model.Config) {
			c.Family, c.Activation = "anneal", "relu2"
		},
		"model.value_embeddings = all": func(c *model.Config) {
			c.Family, c.ValueEmbeddings = "anneal", "all"
		},
		"model.x0_skip = true":       func(c *model.Config) { c.Family, c.X0Skip = "anneal", true },
		"model.positions = rope":     func(c *model.Config) { *c = smallGPT2; c.Positions = schemes("rope") },
		"model.attention = window:8": func(c *model.Config) { *c = smallGPT2; c.Attention = seen("window:8") },
		"model.attention = linear":   func(c *model.Config) { c.Attention = seen("linear") },
		"model.attention = bigbird:window=2:random=3:global=1:block=64": func(c *model.Config) {
			c.Attention = seen("bigbird")
		},
		"model.attention = window:4,full": func(c *model.Config) { c.Attention = seen("window:4,full") },
		"model.qk_norm = true":            func(c *model.Config) { *c = smallGPT2; c.QKNorm = true },
		"model.kv_heads = 1":              func(c *model.Config) { *c = smallGPT2; c.KVHeads = 1 },
		"model.head_dim = 8":              func(c *model.Config) { *c = smallGPT2; c.HeadDim = 8 },
		"model.rope_theta_local = 500":    func(c *model.Config) { c.RopeThetaLocal = 500 },
		"model.score_dim = 24":            func(c *model.Config) { c.ScoreDim = 24 },
		"model.attention_softcap = 50":    func(c *model.Config) { c.AttentionSoftcap = 50 },
		"model.kv_lora_rank = 8":          func(c *model.Config) { c.KVLoraRank, c.RopeHeadDim = 8, 4 },
		"model.short_conv = 4":            func(c *model.Config) { c.Attention, c.ShortConv = seen("delta"), 4 },
		"model.longformer_global_projections = true": func(c *model.Config) {
			c.Attention, c.LongformerGlobalProjections = seen("longformer:8:4"), true
		},
		"model.attention_sinks = true": func(c *model.Config) { c.AttentionSinks = true },
		"model.shared_expert_ffn = 8": func(c *model.Config) {
			c.Family, c.SharedExpertFFN, c.QKNorm = "qwen3_moe", 8, true
		},
		"model.attention = window:6": func(c *model.Config) {
			c.Family, c.Attention, c.QKNorm = "qwen3_moe", seen("window:6"), true
		},
		"model.qk_norm = false": func(c *model.Config) { c.Family, c.Activation = "gemma3", "geglu" },
		"model.activation = swiglu": func(c *model.Config) {
			c.Family, c.Activation, c.QKNorm = "gemma3", "swiglu", true
		},
		"model.logit_softcap = 20": func(c *model.Config) { *c = smallGPT2; c.LogitSoftcap = 20 },
	} {
		c := model.Config{
			Layers: 2, Dim: 32, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 32, Vocab: 64, RopeTheta: 1e4,
			NormEps: 1e-5,
		}
		change(&c)
		if _, err := ToHF(c, hf.Tokens{}, "config.yaml"); err == nil ||
			!strings.Contains(err.Error(), key+" has no field") {
			t.Errorf("%s: error %v", key, err)
		}
	}
}

// A model with interleaved pairs, and one with another base by NTK scaling, is exported as one that transformers has:
// the logits are the same.
func TestExportsInOtherWordsAnswerTheSame(t *testing.T) {
	fp64, err := precision.Lookup("fp64")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	tok, err := os.ReadFile(filepath.Join(golden("qwen3"), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*model.Config){
		"interleaved":               func(c *model.Config) { c.RopeLayout = "interleaved" },
		"interleaved, with QK-norm": func(c *model.Config) { c.RopeLayout, c.QKNorm = "interleaved", true },
		"ntk":                       func(c *model.Config) { c.RopeScaling = nn.RoPEScaling{Kind: "ntk", Factor: 8} },
		"yarn": func(c *model.Config) {
			c.RopeOriginalContext = 8
			c.RopeScaling = nn.RoPEScaling{Kind: "yarn", Factor: 4, Fast: 4, Slow: 0.5, Attention: 1.25}
		},
		"dynamic": func(c *model.Config) {
			c.RopeOriginalContext = 8
			c.RopeScaling = nn.RoPEScaling{Kind: "dynamic", Factor: 2}
		},
		"longrope": func(c *model.Config) {
			c.RopeOriginalContext = 8
			c.RopeScaling = nn.RoPEScaling{Kind: "longrope", Factor: 4, Long: "1,1.5,2.5,4"}
		},
		"llama3": func(c *model.Config) {
			c.RopeOriginalContext = 8
			c.RopeScaling = nn.RoPEScaling{Kind: "llama3", Factor: 4, Low: 0.5, High: 2}
		},
	} {
		c := model.Config{
			Layers: 2, Dim: 32, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 48, Context: 32, Vocab: 64, TieEmbeddings: true,
			RopeTheta: 500, NormEps: 1e-5, InitStd: 0.3,
		}
		change(&c)
		params, err := tensor.NewArena("parameters", model.Measure(c, fp64, 1, c.Context, false).Params)
		if err != nil {
			t.Fatal(err)
		}
		m := model.New(c, model.MemoryOf(dev, fp64, params, nil))
		m.Init(3)
		for i, p := range m.Params() {
			rng := tensor.NewRNG(7, tensor.PurposeInit, uint32(1000+i))
			for j := range p.Value.Len() {
				x := p.Value.Float64(j)
				if p.Role == nn.Norm {
					x = 0.5 + float64(rng.Uint32(uint64(j)))/(1<<32) // gains that differ
				}
				p.Value.SetFloat64(j, float64(float32(x)))
			}
		}
		described, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, "")
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "hf")
		if err := hf.Write(out, described, hf.Export{
			TokenizerJSON: tok, Tensors: Tensors(m, safetensors.F32),
		}); err != nil {
			t.Fatal(err)
		}
		back, other, err := Load(out, fp64, device.Host{})
		if err != nil {
			t.Fatal(err)
		}
		ids := []int32{1, 5, 9, 33, 60, 9, 2, 17, 41, 58, 3, 30}
		want, got := logits(t, dev, m, fp64, ids), logits(t, dev, back, fp64, ids)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12*(1+math.Abs(want[i])) {
				t.Errorf("%s: logit %d is %v, want %v", name, i, got[i], want[i])
				break
			}
		}
		params.Close()
		other.Close()
	}
}

// A scaling that speeds positions up is refused when it is imported, not when the run is opened.
func TestImportRefusesAScalingBelowOne(t *testing.T) {
	c := opened(t, golden("linear")).Config.(*hf.LlamaConfig)
	c.RopeScaling.Factor = 0.5
	if _, err := FromHF(c); err == nil || !strings.Contains(err.Error(), "rope_scaling") {
		t.Errorf("a factor of a half: %v", err)
	}
}

// A base that ntk changed is exported as the base, and turns every pair by the same angle.
func TestExportFoldsNTKIntoTheBase(t *testing.T) {
	c := model.Config{HeadDim: 32, RopeTheta: 1e4, RopeScaling: nn.RoPEScaling{Kind: "ntk", Factor: 8}}
	theta, s, err := positionsToHF(c, "")
	if err != nil || s.Type != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	folded := nn.RoPEScaling{}.Frequencies(c.HeadDim, theta, nn.Lengths{})
	for i, want := range c.RopeScaling.Frequencies(c.HeadDim, c.RopeTheta, nn.Lengths{}) {
		if math.Abs(folded[i]-want) > 1e-12*want {
			t.Errorf("pair %d turns by %v, want %v", i, folded[i], want)
		}
	}
}

// schemes and seen are positions and attention by their text.
func schemes(text string) (p model.Positions) {
	if err := p.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return p
}

func seen(text string) (p attention.Patterns) {
	if err := p.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return p
}
