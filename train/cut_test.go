package train

import (
	"errors"
	"math"
	"strings"
	"testing"

	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/train/traintest"
)

// Optimizers that need whole matrices give ranks that share layers the losses of one rank, whoever owns what.
func TestPeersUpdateMatricesAsWholes(t *testing.T) {
	data := traintest.Data(t)
	for _, overrides := range [][]string{
		{"optimizer.name=muon", "model.kv_heads=1"},
		{"optimizer.name=adafactor", "model.family=gpt2"},
		{"optimizer.name=adafactor", "optimizer.variant=palm"},
	} {
		cfg := smallConfig(t, data, append([]string{
			"train.batch_tokens=256", "precision=fp64", "train.steps=5", "model.heads=4",
		}, overrides...)...)
		cfg.Model.Vocab = 301
		src := dataset.NewRandom(301, cfg.Model.Context, 5)
		want := losses(t, cfg, src, 1)
		for zero := range 4 {
			p := &cfg.Parallel
			p.Tensor, p.Zero, p.Sequence = 2, zero, zero%2 == 0
			for i, got := range losses(t, cfg, src, 4) {
				if math.Abs(got-want[i]) > 1e-9*math.Abs(want[i]) {
					t.Errorf("%v, stage %d: number %d is %v, want %v", overrides, zero, i, got, want[i])
					break
				}
			}
		}
	}
}

// What does not work on parts of parameters is refused by name.
func TestCheckCut(t *testing.T) {
	data := traintest.Data(t)
	for _, x := range []struct{ override, want string }{
		{"optimizer.name=adam8bit", "optimizer.name = adam8bit"},
		{"optimizer.name=sophia", "optimizer.name = sophia"},
		{"optimizer.name=soap", "optimizer.name = soap"},
		{"optimizer.name=muon optimizer.normuon=true", "optimizer.normuon = true"},
		{"model.family=qwen3_moe model.experts=4 model.experts_per_token=2 model.expert_ffn=15",
			"model.expert_ffn = 15"},
	} {
		cfg := smallConfig(t, data, strings.Fields(x.override)...)
		cfg.Model.Vocab, cfg.Parallel.Ranks, cfg.Parallel.Tensor = 300, 2, 2
		d, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		_, err = MeasureRank(cfg, d, local.New(2, local.Options{})[0])
		var problem config.Problem
		if !errors.As(err, &problem) || !strings.HasPrefix(problem.Message, x.want) ||
			!strings.Contains(problem.Message, "parallel.tensor = 2") {
			t.Errorf("%s: %v", x.override, err)
		}
	}
}
