package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"
	"anneal/safetensors"
)

// Adapter holds adapters of LoRA or DoRA in the form of Hugging Face's peft, for use with a model that is stored
// separately.
type Adapter struct {
	Tensors []safetensors.Tensor
	Modules []string // modules with adapters, by the ends of their names
	Rank    int
	Alpha   float64
	DoRA    bool
	Base    string // path or name of the model; may be empty
	Conv1D  bool   // the weights are those of GPT-2, stored as [in, out]
}

// The files of an adapter.
const (
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// WriteAdapter writes adapter_config.json and adapter_model.safetensors. dir must be empty or absent; it appears when
// it is complete and check, which reads it first, agrees.
func WriteAdapter(dir string, a Adapter, check func(dir string) error) error {
	config := map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": nil, "inference_mode": true,
		"r": a.Rank, "lora_alpha": a.Alpha, "lora_dropout": 0.0, "use_dora": a.DoRA, "target_modules": a.Modules,
		"bias": "none", "fan_in_fan_out": a.Conv1D, "modules_to_save": nil,
	}
	if a.Base != "" {
		config["base_model_name_or_path"] = a.Base
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(config); err != nil {
		return fmt.Errorf("hf: adapter_config.json: %w", err)
	}
	err := fileio.Dir(dir, func(tmp string) error {
		file := filepath.Join(tmp, adapterWeights)
		if err := safetensors.WriteFile(file, finite(a.Tensors), map[string]string{"format": "pt"}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, adapterConfig), text.Bytes(), 0o644); err != nil {
			return err
		}
		return check(tmp)
	})
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}

// CheckAdapter reads back the files that WriteAdapter wrote to dir. Names, shapes and values must be those of a, whose
// tensors it reads.
func CheckAdapter(dir string, a Adapter) error {
	text, err := os.ReadFile(filepath.Join(dir, adapterConfig))
	if err != nil {
		return err
	}
	var c struct {
		Base    string   `json:"base_model_name_or_path"`
		Rank    int      `json:"r"`
		Alpha   float64  `json:"lora_alpha"`
		DoRA    bool     `json:"use_dora"`
		Modules []string `json:"target_modules"`
		Conv1D  bool     `json:"fan_in_fan_out"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s: %w", adapterConfig, err)
	}
	if c.Base != a.Base || c.Rank != a.Rank || c.Alpha != a.Alpha || c.DoRA != a.DoRA || c.Conv1D != a.Conv1D ||
		!slices.Equal(c.Modules, a.Modules) {
		return fmt.Errorf("%s says %+v", adapterConfig, c)
	}
	f, err := safetensors.Open(filepath.Join(dir, adapterWeights))
	if err != nil {
		return err
	}
	defer f.Close()
	if n := len(f.Tensors()); n != len(a.Tensors) {
		return fmt.Errorf("%s has %d tensors, want %d", adapterWeights, n, len(a.Tensors))
	}
	for _, t := range a.Tensors {
		info, _ := f.Lookup(t.Name)
		if info.DType != t.DType || !slices.Equal(info.Shape, t.Shape) {
			return fmt.Errorf("tensor %s is %s %v, want %s %v", t.Name, info.DType, info.Shape, t.DType, t.Shape)
		}
		want, err := io.ReadAll(t.Data)
		if err != nil {
			return err
		}
		got := make([]byte, info.Size)
		if err := f.ReadAt(t.Name, got, 0); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("tensor %s has other values", t.Name)
		}
	}
	return nil
}
