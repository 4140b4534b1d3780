package hf

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/safetensors"
)

func TestExportRefusesAndLeavesNothing(t *testing.T) {
	type change = func(*LlamaConfig, *Export)
	weights := func(value float32) []float32 {
		list := make([]float32, 64*32)
		list[1000] = value
		return list
	}
	find := func(e *Export, name string) *safetensors.Tensor {
		return &e.Tensors[slices.IndexFunc(e.Tensors, func(t safetensors.Tensor) bool { return t.Name == name })]
	}
	for want, change := range map[string]change{
		`tensor "model.norm.weight" is missing`: func(c *LlamaConfig, e *Export) {
			e.Tensors = slices.DeleteFunc(e.Tensors,
				func(t safetensors.Tensor) bool { return t.Name == "model.norm.weight" })
		},
		`tensor "model.extra" is not part of the model`: func(c *LlamaConfig, e *Export) {
			e.Tensors = append(e.Tensors, safetensors.Float32("model.extra", safetensors.F32, []int{1}, []float32{1}))
		},
		`"model.norm.weight" has shape [32 1], the config asks for [32]`: func(c *LlamaConfig, e *Export) {
			find(e, "model.norm.weight").Shape = []int{32, 1}
		},
		`"lm_head.weight" is present, but tie_word_embeddings`: func(c *LlamaConfig, e *Export) { c.Tied = true },
		"is given twice": func(c *LlamaConfig, e *Export) { e.Tensors = append(e.Tensors, e.Tensors[0]) },
		"must have one dtype": func(c *LlamaConfig, e *Export) {
			*find(e, "lm_head.weight") = safetensors.Float32("lm_head.weight",
				safetensors.BF16, []int{64, 32}, weights(0))
		},
		"exported as F32, BF16 or F16": func(c *LlamaConfig, e *Export) { e.Tensors[0].DType = safetensors.I64 },
		`"lm_head.weight": element 1000 is not a finite`: func(c *LlamaConfig, e *Export) {
			*find(e, "lm_head.weight") = safetensors.Float32("lm_head.weight",
				safetensors.F32, []int{64, 32}, weights(float32(math.Inf(-1))))
		},
		"eos_token has id 40": func(c *LlamaConfig, e *Export) { c.EOS = []int{40} },
		"the model's vocabulary": func(c *LlamaConfig, e *Export) {
			e.TokenizerJSON = []byte(`{"model":{"vocab":{"a":64}}}`)
		},
		"has no vocabulary":       func(c *LlamaConfig, e *Export) { e.TokenizerJSON = []byte(`{}`) },
		"tokenizer.json: unexpec": func(c *LlamaConfig, e *Export) { e.TokenizerJSON = nil },
		"rms_norm_eps = NaN":      func(c *LlamaConfig, e *Export) { c.NormEps = math.NaN() },
	} {
		base := t.TempDir()
		c, e := exportLlama(t)
		change(c, &e)
		err := Write(filepath.Join(base, "out"), c, e)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if left, _ := os.ReadDir(base); len(left) > 0 {
			t.Errorf("%s: %v is left", want, left)
		}
	}
}

func exportLlama(t *testing.T) (*LlamaConfig, Export) {
	c, e := exportGolden(t, "llama")
	return c.(*LlamaConfig), e
}

func TestNonFiniteWeightsAreFoundInEveryDtype(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
			for _, at := range []int{0, 1, 6} {
				values := []float32{1, -math.MaxFloat32 / 2, math.SmallestNonzeroFloat32, 0, 1e38, -1e-38, 7}
				if err := readAll(safetensors.Float32("w", dtype, []int{7}, values)); err != nil {
					t.Errorf("%s: finite values gave %v", dtype, err)
				}
				values[at] = bad
				if err := readAll(safetensors.Float32("w", dtype, []int{7}, values)); err == nil {
					t.Errorf("%s: %v at %d passed", dtype, bad, at)
				}
			}
		}
	}
	half := func(b ...byte) safetensors.Tensor {
		return safetensors.Tensor{
			Name: "w", DType: safetensors.F16, Shape: []int{len(b) / 2}, Data: bytes.NewReader(b),
		}
	}
	if err := readAll(half(0xff, 0x7b, 0xff, 0xfb)); err != nil {
		t.Errorf("F16: ±65504 gave %v", err)
	}
	if err := readAll(half(0, 0x3c, 0, 0x7c)); err == nil {
		t.Error("F16: infinity passed")
	}
}

func readAll(tensor safetensors.Tensor) error {
	p := make([]byte, 14) // two reads and a piece, so that state is carried from read to read
	r := finite([]safetensors.Tensor{tensor})[0].Data
	for {
		if _, err := r.Read(p); err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
	}
}

func TestExportTakesAnEmptyDirectoryAndNoOther(t *testing.T) {
	dir := t.TempDir()
	c, e := exportGolden(t, "llama")
	if err := Write(dir, c, e); err != nil {
		t.Fatal(err)
	}
	var files []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		files = append(files, f.Name())
	}
	want := []string{
		"README.md", "config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json",
		"tokenizer.json", "tokenizer_config.json",
	}
	if !slices.Equal(files, want) {
		t.Errorf("files = %v, want %v", files, want)
	}
	c, e = exportGolden(t, "qwen3")
	if err := Write(dir, c, e); err == nil || !strings.Contains(err.Error(), "holds files already") {
		t.Errorf("a second export into the same directory: %v", err)
	}
	if got := open(t, dir).Config.Class(); got != "LlamaForCausalLM" {
		t.Error("the refused export changed the directory")
	}
}

// transformers 5 rejects an integer where it wants a float, and every version wants the special tokens to agree.
func TestExportedSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	c, e := exportLlama(t)
	c.RopeTheta, c.EOS, c.Pad = 1e6, []int{2, 0}, -1
	if err := Write(dir, c, e); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rope_theta": 1e+06`, `"rms_norm_eps": 1e-05`, `"attention_dropout": 0.0`, `"pad_token_id": null`,
		`"dtype": "float32"`, `"torch_dtype": "float32"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("config.json lacks %s:\n%s", want, text)
		}
	}
	var tok map[string]any
	text, err = os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &tok); err != nil {
		t.Fatal(err)
	}
	if tok["bos_token"] != "<|bos|>" || tok["eos_token"] != "<|eos|>" || tok["pad_token"] != nil ||
		tok["tokenizer_class"] != "PreTrainedTokenizerFast" {
		t.Errorf("tokenizer_config.json: %v", tok)
	}
	card, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(card), "---\nlibrary_name: transformers\n") ||
		!strings.Contains(string(card), `| odd \| fact | a b |`) {
		t.Errorf("README.md:\n%s", card)
	}
	if got, err := ReadConfig(dir); err != nil || !slices.Equal(got.tokens().EOS, []int{2, 0}) ||
		got.tokens().Pad != -1 {
		t.Errorf("config came back as %+v, %v", got, err)
	}
}

func TestOpenNamesWhatDoesNotFit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	c, e := exportGolden(t, "llama")
	if err := Write(dir, c, e); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `"intermediate_size": 48`, `"intermediate_size": 40`, 1))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(),
		`"model.layers.1.mlp.up_proj.weight" has shape [48 32], the config asks for [40 32]`) {
		t.Errorf("error = %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("error of an empty directory = %v", err)
	}
}
