package hf

import (
	"path/filepath"
	"strings"
	"testing"

	numbers "anneal/internal/floats"
	"anneal/safetensors"
)

// Adapters that are not what was written are found: by their settings, names, shapes and values.
func TestCheckAdapterFindsADifference(t *testing.T) {
	adapter := func(values ...float32) Adapter {
		return Adapter{
			Rank: 1, Alpha: 2, Modules: []string{"self_attn.q_proj"}, Base: "base",
			Tensors: []safetensors.Tensor{safetensors.Float32From("a", "BF16", []int{1, len(values)}, len(values),
				numbers.Of(values))},
		}
	}
	dir := filepath.Join(t.TempDir(), "adapter")
	if err := WriteAdapter(dir, adapter(1, 2), func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := CheckAdapter(dir, adapter(1, 2)); err != nil {
		t.Error(err)
	}
	for want, other := range map[string]Adapter{
		"a has other values": adapter(1, 3), "is BF16 [1 2]": adapter(1, 2, 3), "tensors": {Rank: 1, Alpha: 2,
			Modules: []string{"self_attn.q_proj"}, Base: "base"}, "says": {Rank: 2},
	} {
		if err := CheckAdapter(dir, other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one of %s", err, want)
		}
	}
}
