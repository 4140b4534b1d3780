package train

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/model"
)

// trainerOf returns a trainer on a device of its own; both live as long as the test.
func trainerOf(t testing.TB, cfg *config.Config, threads int) *Trainer {
	t.Helper()
	tier, err := isa.Choose()
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.NewTier(tier, threads) // which may be more than the CPUs
	t.Cleanup(dev.Close)
	tr, err := New(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// hashes returns the hashes of a trainer's weights and optimizer state.
func hashes(t *Trainer) [2]string {
	var list []checkpoint.Tensor
	for _, x := range t.Tensors() {
		list = append(list, checkpoint.Tensor{
			Name: x.Name, DType: strings.ToUpper(x.Value.DType().String()), Shape: x.Value.Shape(), Data: bytesOf(&x),
			Optim: x.Kind == OfOptimizer, Average: x.Kind == OfAverage,
		})
	}
	w, o, _ := checkpoint.HashTensors(list)
	return [2]string{w, o}
}

// bytesOf returns the bytes of a tensor, wherever it lies.
func bytesOf(x *Tensor) []byte { return device.OnHost(x.Memory, x.Value).Raw() }

// smallConfig loads a configuration of little more than the overrides, so that what they do not say follows from them.
func smallConfig(t *testing.T, data string, overrides ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("model: {layers: 2, dim: 32, heads: 2, context: 32}\ndata: {path: %s}\n", data) +
		"train: {steps: 4, batch_tokens: 256, micro_batch: 4, eval_every: 4, eval_tokens: 256, norms_every: 1}\n" +
		"schedule: {warmup: 1}\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// recomputing is a strategy by its text.
func recomputing(text string) (r model.Recompute) {
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}
