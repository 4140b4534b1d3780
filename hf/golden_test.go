package hf

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/safetensors"
)

var keep = flag.String("keep", "",
	"leave the exported directories of TestExportGivesTheModelBack here, for testdata/check_export.py")

var goldenTokens = Tokens{BOS: 1, Pad: 0, EOS: []int{2}}

// goldenLlama and goldenGPT2 are what the smaller models of testdata have in common.
func goldenLlama(change func(*LlamaConfig)) *LlamaConfig {
	c := &LlamaConfig{
		VocabSize: 64, HiddenSize: 16, FFNSize: 24, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, MaxPositions: 32,
		RopeTheta: 10000, NormEps: 1e-6, InitStd: 0.02, Tokens: goldenTokens,
	}
	change(c)
	return c
}

func goldenGPT2(change func(*GPT2Config)) *GPT2Config {
	c := &GPT2Config{
		VocabSize: 64, HiddenSize: 16, FFNSize: 64, Layers: 2, Heads: 2, MaxPositions: 32, NormEps: 1e-5, InitStd: 0.02,
		Tied: true, Tokens: goldenTokens,
	}
	change(c)
	return c
}

func goldenScaled(s RopeScaling) *LlamaConfig {
	return goldenLlama(func(c *LlamaConfig) { c.RopeTheta, c.RopeScaling, c.Tied = 100, s, true })
}

var golden = map[string]Config{
	"llama": &LlamaConfig{
		VocabSize: 64, HiddenSize: 32, FFNSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, MaxPositions: 64,
		RopeTheta: 500, NormEps: 1e-5, InitStd: 0.02, Tokens: goldenTokens,
	},
	"qwen3": &LlamaConfig{
		VocabSize: 64, HiddenSize: 32, FFNSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, MaxPositions: 64,
		RopeTheta: 10000, NormEps: 1e-6, InitStd: 0.02, Tokens: goldenTokens, Tied: true, QKNorm: true,
	},
	"linear": goldenScaled(RopeScaling{Type: "linear", Factor: 4}),
	"yarn": goldenScaled(RopeScaling{
		Type: "yarn", Factor: 4, OriginalPositions: 8, AttentionFactor: 0.1*math.Log(4) + 1, BetaFast: 2,
		BetaSlow: 0.25,
	}),
	"longrope": goldenScaled(RopeScaling{
		Type: "longrope", Factor: 4, OriginalPositions: 8, AttentionFactor: math.Sqrt(1 + math.Log(4)/math.Log(8)),
		ShortFactor: []float64{1, 1, 1.1, 1.2}, LongFactor: []float64{1, 1.5, 2.5, 4},
	}),
	"llama3":  goldenScaled(RopeScaling{Type: "llama3", Factor: 8, OriginalPositions: 16, LowFreq: 1, HighFreq: 4}),
	"mistral": goldenLlama(func(c *LlamaConfig) { c.HeadDim, c.Window = 6, 5 }),
	"windows": goldenLlama(func(c *LlamaConfig) {
		c.Layers, c.Tied, c.QKNorm, c.Window, c.WindowLayers = 3, true, true, 4, []bool{true, false, true}
	}),
	"gemma2": &Gemma2Config{
		LlamaConfig: *goldenLlama(func(c *LlamaConfig) {
			c.Layers, c.Tied, c.Window, c.WindowLayers, c.RopeTheta = 3, true, 4, []bool{true, false, true}, 100
		}), ScoreDim: 10, ScoreSoftcap: 0.5, LogitSoftcap: 20,
	},
	"gemma3": &Gemma3Config{
		LlamaConfig: *goldenLlama(func(c *LlamaConfig) {
			c.Layers, c.Tied, c.QKNorm, c.Window, c.WindowLayers = 3, true, true, 4, []bool{true, false, true}
			c.RopeTheta, c.RopeScaling = 100, RopeScaling{Type: "linear", Factor: 4}
		}), LocalTheta: 20, ScoreDim: 10, LogitSoftcap: 20,
	},
	"qwen3_moe": &Qwen3MoEConfig{
		LlamaConfig: *goldenLlama(func(c *LlamaConfig) { c.QKNorm, c.RopeTheta = true, 500 }),
		Experts:     4, ExpertsPerToken: 2, ExpertFFN: 12, Normalise: true, AuxLoss: 0.001,
	},
	"gpt2":        goldenGPT2(func(*GPT2Config) {}),
	"gpt2-untied": goldenGPT2(func(c *GPT2Config) { c.FFNSize, c.Tied, c.NormEps = 40, false, 1e-3 }),
}

func open(t *testing.T, dir string) *Model {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// wantLogits runs the reference, if it knows as much, on a directory and compares with what transformers computed from
// the golden one. HF computes norms and RoPE in float32 even in a float64 model, hence the tolerance.
func wantLogits(t *testing.T, name, dir string) {
	t.Helper()
	if name != "llama" && name != "qwen3" {
		return // package train runs the models of testdata
	}
	var want struct {
		IDs    []int       `json:"ids"`
		Logits [][]float64 `json:"logits"`
	}
	text, err := os.ReadFile(filepath.Join("testdata", name, "logits.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	got := newReference(t, open(t, dir)).logits(want.IDs)
	worst := 0.0
	for p := range want.Logits {
		for i, w := range want.Logits[p] {
			worst = max(worst, math.Abs(got[p][i]-w))
		}
	}
	if !(worst < 5e-6) {
		t.Errorf("%s: a logit is off by %g, want less than 5e-6", dir, worst)
	}
}

func TestReadsWhatTransformersSaved(t *testing.T) {
	for name, want := range golden {
		dir := filepath.Join("testdata", name)
		if got := open(t, dir).Config; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: config = %+v, want %+v", name, got, want)
		}
		wantLogits(t, name, dir)
	}
}

// tensorsOf hands the tensors of a model on in their own dtype.
func tensorsOf(t *testing.T, m *Model) []safetensors.Tensor {
	t.Helper()
	var list []safetensors.Tensor
	for _, spec := range m.Config.Tensors() {
		info, _ := m.weights.Lookup(m.stored(spec.Name))
		data := make([]byte, info.Size)
		if err := m.weights.ReadAt(m.stored(spec.Name), data, 0); err != nil {
			t.Fatal(err)
		}
		list = append(list, safetensors.Tensor{
			Name: spec.Name, DType: info.DType, Shape: spec.Shape, Data: bytes.NewReader(data),
		})
	}
	return list
}

func exportGolden(t *testing.T, name string) (Config, Export) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	m := open(t, dir)
	tok, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Config, Export{
		Tensors: tensorsOf(t, m), TokenizerJSON: tok,
		Card: Card{Name: "golden " + name, Facts: [][2]string{{"layers", "2"}, {"odd | fact", "a\nb"}}},
	}
}

// In one file the weights are byte for byte what transformers wrote; in shards they compute the same.
func TestExportGivesTheModelBack(t *testing.T) {
	base := t.TempDir()
	if *keep != "" {
		base = *keep
	}
	for name, want := range golden {
		for suffix, shard := range map[string]int64{"": 0, "-sharded": 6_000} {
			dir := filepath.Join(base, name+suffix)
			c, e := exportGolden(t, name)
			e.MaxShard = shard
			if err := Write(dir, c, e); err != nil {
				t.Fatal(err)
			}
			if got := open(t, dir).Config; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: config came back as %+v, want %+v", name, got, want)
			}
			wantLogits(t, name, dir)
			if shard != 0 {
				if _, err := os.Stat(filepath.Join(dir, "model.safetensors.index.json")); err != nil {
					t.Errorf("%s: %v; want shards", name, err)
				}
				continue
			}
			if name == "qwen3" {
				continue // transformers wrote shards
			}
			theirs, err := os.ReadFile(filepath.Join("testdata", name, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			ours, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ours, theirs) {
				t.Errorf("%s: weights of %d bytes differ from those that transformers wrote, %d bytes",
					name, len(ours), len(theirs))
			}
		}
	}
}

// Files of OpenAI's GPT-2 have no "transformer." before their names, masks that are no weights, and some tied models a
// copy of the embedding for a head.
func TestOtherNamesForTheSameWeights(t *testing.T) {
	c, e := exportGolden(t, "gpt2")
	var bare []safetensors.Tensor
	for _, x := range e.Tensors {
		x.Name = strings.TrimPrefix(x.Name, "transformer.")
		bare = append(bare, x)
	}
	mask := safetensors.Float32("h.0.attn.bias", safetensors.F32, []int{1, 1, 2, 2}, []float32{1, 0, 1, 1})
	head := tensorsOf(t, open(t, filepath.Join("testdata", "gpt2")))[0]
	head.Name = "lm_head.weight"
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join("testdata", "gpt2", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.WriteDir(dir, append(bare, mask, head), 1<<20); err != nil {
		t.Fatal(err)
	}
	got, want := open(t, dir), open(t, filepath.Join("testdata", "gpt2"))
	for _, spec := range c.Tensors() {
		x, y := values(t, got, spec), values(t, want, spec)
		if !slices.Equal(x, y) {
			t.Errorf("%s begins with %v, want %v", spec.Name, x[:4], y[:4])
		}
	}
	head = safetensors.Float32("lm_head.weight", safetensors.F32, []int{64, 16}, make([]float32, 64*16))
	_, e = exportGolden(t, "gpt2")
	if err := safetensors.WriteDir(dir, append(e.Tensors, head), 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), `"lm_head.weight" is not the embedding`) {
		t.Errorf("a tied model with another head: %v", err)
	}
}

func values(t *testing.T, m *Model, spec Spec) []float32 {
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

// Weights that are not numbers are refused as they are read, whatever the file stores them as.
func TestReadRefusesWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
			dir := t.TempDir()
			text, err := os.ReadFile(filepath.Join("testdata", "llama", "config.json"))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			var tensors []safetensors.Tensor
			for _, s := range golden["llama"].Tensors() {
				values := make([]float32, elements(s.Shape))
				if s.Name == "model.norm.weight" {
					values[3] = float32(bad)
				}
				tensors = append(tensors, safetensors.Float32(s.Name, dtype, s.Shape, values))
			}
			if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, nil); err != nil {
				t.Fatal(err)
			}
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			err = m.Read("model.norm.weight", make([]float32, 32))
			if err == nil || !strings.Contains(err.Error(), `element 3 of tensor "model.norm.weight"`) {
				t.Errorf("%v as %s: error %v, want one that names the element", bad, dtype, err)
			}
		}
	}
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
