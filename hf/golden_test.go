package hf

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"anneal/safetensors"
)

var keep = flag.String("keep", "", "leave the exported directories of TestExportGivesTheModelBack here, for testdata/check_export.py")

var golden = map[string]LlamaConfig{
	"llama": {
		VocabSize: 64, HiddenSize: 32, FFNSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, MaxPositions: 64,
		RopeTheta: 500, NormEps: 1e-5, InitStd: 0.02, BOS: 1, EOS: []int{2}, Pad: 0,
	},
	"qwen3": {
		VocabSize: 64, HiddenSize: 32, FFNSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, MaxPositions: 64,
		RopeTheta: 10000, NormEps: 1e-6, InitStd: 0.02, BOS: 1, EOS: []int{2}, Pad: 0, Tied: true, QKNorm: true,
	},
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

// wantLogits runs the reference on a directory and compares with what transformers computed from the golden one. HF
// computes norms and RoPE in float32 even in a float64 model, hence the tolerance.
func wantLogits(t *testing.T, name, dir string) {
	t.Helper()
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
	for _, spec := range LlamaTensors(m.Config) {
		info, _ := m.Weights.Lookup(spec.Name)
		data := make([]byte, info.Size)
		if err := m.Weights.ReadAt(spec.Name, data, 0); err != nil {
			t.Fatal(err)
		}
		list = append(list, safetensors.Bytes(spec.Name, info.DType, spec.Shape, data))
	}
	return list
}

func exportGolden(t *testing.T, name string) (LlamaConfig, Export) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	m := open(t, dir)
	tok, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Config, Export{
		Tensors: tensorsOf(t, m), TokenizerJSON: tok,
		Card: Card{Name: "golden " + name, License: "mit", Facts: [][2]string{{"layers", "2"}, {"odd | fact", "a\nb"}}},
	}
}

// In one file the weights are byte for byte what transformers wrote; in shards they compute the same.
func TestExportGivesTheModelBack(t *testing.T) {
	base := t.TempDir()
	if *keep != "" {
		base = *keep
	}
	for name, want := range golden {
		for suffix, shard := range map[string]int64{"": 0, "-sharded": 20_000} {
			dir := filepath.Join(base, "exports", name+suffix)
			c, e := exportGolden(t, name)
			e.MaxShard = shard
			if err := ExportLlama(dir, c, e); err != nil {
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
			if name != "llama" {
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
				t.Errorf("%s: weights of %d bytes differ from those that transformers wrote, %d bytes", name, len(ours), len(theirs))
			}
		}
	}
}
