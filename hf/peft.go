package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"anneal/internal/fileio"
	"anneal/safetensors"
)

// Adapter is adapters of LoRA or DoRA in the form of Hugging Face's peft, to be used beside a model that is elsewhere.
type Adapter struct {
	Tensors []safetensors.Tensor
	Modules []string // that have adapters, by the ends of their names
	Rank    int
	Alpha   float64
	DoRA    bool
	Base    string // path or name of the model; may be empty
	Conv1D  bool   // the weights are those of GPT-2, stored as [in, out]
}

// WriteAdapter writes adapter_config.json and adapter_model.safetensors. dir must be empty or absent; it appears when
// it is complete.
func WriteAdapter(dir string, a Adapter) error {
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
		file := filepath.Join(tmp, "adapter_model.safetensors")
		if err := safetensors.WriteFile(file, finite(a.Tensors), map[string]string{"format": "pt"}); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tmp, "adapter_config.json"), text.Bytes(), 0o644)
	})
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}
