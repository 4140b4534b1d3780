package train

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
)

// Parameters that a pattern freezes keep their weights, which are their average, too; all others move.
func TestPatternsFreezeByName(t *testing.T) {
	cfg := smallConfig(t, "data", "model.vocab=64", "average.ema=0.9",
		"optimizer.patterns=layers.1.* lr_ratio=0; embed lr_ratio=0.5")
	tr := trainerOf(t, cfg, 1)
	before := map[string][]float32{}
	for _, p := range tr.Model().Params() {
		before[p.Name] = append([]float32(nil), p.Value.F32()...)
	}
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	for range 3 {
		if _, err := tr.Step(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range tr.Model().Params() {
		frozen := strings.HasPrefix(p.Name, "layers.1.")
		if moved := !slices.Equal(p.Value.F32(), before[p.Name]); moved == frozen {
			t.Errorf("%s: moved %v", p.Name, moved)
		}
		if frozen && !slices.Equal(tr.average.values[i].F32(), before[p.Name]) {
			t.Errorf("%s: the average moved", p.Name)
		}
	}
}

// A pattern of names without a match among the trained parameters is a mistake of its key, and so is freezing all.
func TestPatternsThatChangeNothingAreRefused(t *testing.T) {
	adapters := []string{"init.from=base", "model.lora_rank=4"}
	for _, c := range []struct {
		set            []string
		key, says, try string
	}{
		{[]string{"optimizer.patterns=layers.7.* lr_ratio=0"}, "optimizer.patterns", `"layers.7.*"`, "one of embed"},
		{[]string{"optimizer.patterns=embed weight_decay=2000"}, "optimizer.patterns", "weight of embed",
			"a decay below"},
		{[]string{"optimizer.lr=0.01", "optimizer.weight_decay=0.5", "optimizer.patterns=embed lr_ratio=500"},
			"optimizer.patterns", "at the rate 5", "a rate below 2"},
		{[]string{"optimizer.patterns=* lr_ratio=0"}, "optimizer.patterns", "nothing would be trained", "lr_ratio"},
		{append(adapters, "optimizer.patterns=embed lr_ratio=2"), "optimizer.patterns", `"embed"`,
			"layers.*.attention.qkv.lora_a"},
		{append(adapters, "model.lora_targets=mlp.down, attention.w*"), "model.lora_targets", `"attention.w*"`,
			"some of attention.qkv, "},
		{append(adapters, "model.lora_targets=embed"), "model.lora_targets", `"embed"`, "mlp.down"},
	} {
		cfg := smallConfig(t, "data", append([]string{"model.vocab=64"}, c.set...)...)
		_, err := MeasureRun(cfg, device.Unknown{})
		var p config.Problem
		if !errors.As(err, &p) || p.Key != c.key || !strings.Contains(p.Message, c.says) ||
			!strings.Contains(p.Try, c.try) {
			t.Errorf("%v: %v, want one of %s that says %q and to try %q", c.set, err, c.key, c.says, c.try)
		}
	}
}
