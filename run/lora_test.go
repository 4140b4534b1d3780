package run

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
	"anneal/train"
	"anneal/train/traintest"
)

// A run with adapters leaves every other weight as it was, keeps state for the adapters only, and has the same bits on
// any number of threads and after a stop.
func TestAdaptersTrainAlone(t *testing.T) {
	data := traintest.Data(t)
	for name, set := range map[string][]string{
		"llama":  nil,
		"dora":   nil,
		"gpt2":   {"model.family=gpt2"},
		"anneal": {"model.family=anneal", "model.layers=4"},
	} {
		from, _ := trainedRun(t, data, set...)
		source := startedFrom(t, initConfig(t, from, data))
		dir := filepath.Join(t.TempDir(), "run")
		with := []string{"model.lora_rank=4", "optimizer.lr=1e-2", "train.micro_batch=2"}
		if name == "dora" {
			with = append(with, "model.lora_dora=true")
		}
		want := mustRun(t, Options{Config: initConfig(t, from, data, with...), Dir: dir, Threads: 2})
		alone := mustRun(t, Options{
			Config: initConfig(t, from, data, with...), Dir: filepath.Join(t.TempDir(), "alone"), Threads: 1,
		})
		again := resumedAt(t, dir, 2)
		if again.WeightsHash != want.WeightsHash || alone.WeightsHash != want.WeightsHash {
			t.Errorf("%s: weights %.12s, resumed %.12s, on one thread %.12s", name, want.WeightsHash,
				again.WeightsHash, alone.WeightsHash)
		}
		trained := startedFrom(t, initConfig(t, dir, data))
		weights := map[string]*nn.Param{}
		for _, p := range source.Model().Params() {
			weights[p.Name] = p
		}
		elements := 0
		for _, p := range trained.Model().Params() {
			switch was := weights[p.Name]; {
			case was != nil && !bytes.Equal(p.Value.Raw(), was.Value.Raw()):
				t.Errorf("%s: %s was trained", name, p.Name)
			case model.IsAdapter(p):
				elements += p.Len()
				if of, is := model.Magnitude(p); is {
					start := tensor.Of(make([]float32, p.Len()))
					model.RowNorms(start, &weights[of].Value)
					if slices.Equal(start.F32(), p.Value.F32()) || math.Abs(start.Float64(0)-p.Value.Float64(0)) > 1 {
						t.Errorf("%s: %s began with %v and is %v", name, p.Name, start.F32()[:3], p.Value.F32()[:3])
					}
				}
				if strings.HasSuffix(p.Name, "lora_b") && !slices.ContainsFunc(p.Value.F32(),
					func(x float32) bool { return x != 0 }) {
					t.Errorf("%s: %s was not trained", name, p.Name)
				}
			}
		}
		i := slices.IndexFunc(want.Arenas, func(a ArenaUse) bool { return a.Name == train.OptimizerState })
		if got := int(want.Arenas[i].Bytes); got > 9*elements || got < 8*elements {
			t.Errorf("%s: state of %d bytes for %d elements of adapters", name, got, elements)
		}
	}
}
