package train

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

	"anneal/device/cpu"
	"anneal/hf"
	"anneal/model"
	"anneal/nn"
	"anneal/precision"
	"anneal/safetensors"
)

var keep = flag.String("keep", "", "leave the exports of TestExportGivesBackWhatWasImported here, for ../hf/testdata/check_export.py")

// models are directories that transformers wrote, with what it computed from them.
var models = []string{"llama", "qwen3", "linear", "yarn", "llama3"}

func golden(name string) string { return filepath.Join("..", "hf", "testdata", name) }

// An imported model computes what transformers does: the logits after every prefix, in float64. transformers computes norms
// and RoPE in float32 even then, hence the tolerance.
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
		m, params, err := loadHF(golden(name), fp64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := &Trained{dev: dev, policy: fp64}
		worst := 0.0
		for n := range want.IDs {
			got, err := r.probe(m, fp64, want.IDs[:n+1])
			if err != nil {
				t.Fatal(err)
			}
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
		m, params, err := loadHF(golden(name), fp32)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := toHF(m.Config, tokensOf(was.Config), "")
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
		if err := hf.Write(out, c, hf.Export{TokenizerJSON: tok, Tensors: hfTensors(m, safetensors.F32)}); err != nil {
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
	if l, ok := c.(*hf.LlamaConfig); ok {
		return l.Tokens
	}
	return c.(*hf.GPT2Config).Tokens
}

// What Hugging Face's formats cannot say of positions is refused by the name of its key.
func TestExportRefusesOtherPositions(t *testing.T) {
	for key, c := range map[string]model.Config{
		"model.positions = none":          {Positions: "none"},
		"model.positions = learned":       {Positions: "learned"},
		"model.positions = rope,none":     {Positions: "rope,none"},
		"model.rope_layout = interleaved": {RopeInterleaved: true},
	} {
		if _, err := toHF(c, hf.Tokens{}, "config.yaml"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A base that ntk changed is exported as the base, and turns every pair by the same angle.
func TestExportFoldsNTKIntoTheBase(t *testing.T) {
	c := model.Config{HeadDim: 32, RopeTheta: 1e4, RopeScaling: nn.RoPEScaling{Kind: "ntk", Factor: 8}}
	theta, s, err := positionsToHF(c, "")
	if err != nil || s.Type != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	folded := nn.RoPEScaling{}.Frequencies(c.HeadDim, theta)
	for i, want := range c.RopeScaling.Frequencies(c.HeadDim, c.RopeTheta) {
		if math.Abs(folded[i]-want) > 1e-12*want {
			t.Errorf("pair %d turns by %v, want %v", i, folded[i], want)
		}
	}
}
