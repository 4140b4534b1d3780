package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	numbers "anneal/internal/floats"
	"anneal/safetensors"
)

func adapter(values ...float32) Adapter {
	return Adapter{
		Rank: 1, Alpha: 2, Modules: []string{"self_attn.q_proj"}, Base: "base",
		Tensors: []safetensors.Tensor{safetensors.Float32From("a", "BF16", []int{1, len(values)}, len(values),
			numbers.Of(values))},
	}
}

// Adapters whose check fails leave nothing behind.
func TestAdaptersThatFailTheirCheckLeaveNothing(t *testing.T) {
	parent := t.TempDir()
	err := WriteAdapter(filepath.Join(parent, "adapter"), adapter(1, 2), func(written string) error {
		return CheckAdapter(written, adapter(1, 3))
	})
	if err == nil || !strings.Contains(err.Error(), "other values") {
		t.Errorf("error %v, want one of other values", err)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) > 0 {
		t.Errorf("%v was left behind (%v)", left, err)
	}
}

// Adapters that are not what was written are found: by their settings, names, shapes and values.
func TestCheckAdapterFindsADifference(t *testing.T) {
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
