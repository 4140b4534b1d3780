package train

import (
	"strings"
	"testing"

	"anneal/dataset"
)

// Stages of a pipeline end with the bits of one rank, and report the same numbers, whatever the schedule and beside any
// data parallelism, unless the head is tied.
func TestPipelineIsTheModel(t *testing.T) {
	data := testData(t)
	for _, overrides := range [][]string{
		{"precision=bf16"},
		{"precision=fp32", "optimizer.name=muon", "memory.recompute=every:1"},
		{"precision=fp16", "model.family=gpt2", "train.z_loss=1e-3", "loss_scale.init=1099511627776"},
		{"precision=fp8", "fp8.scaling=delayed", "train.noise_scale_every=2"},
		{"model.family=anneal", "model.dropout=0.1", "model.stochastic_depth=0.5"},
		{"model.family=gemma3", "model.attention=window:8,full", "optimizer.name=adafactor", "average.ema=0.9"},
		{"precision=bf16_sr", "optimizer.name=adam8bit", "parallel.sum_block=2"},
		{"parallel.wire=int8", "train.batch_ramp=256 over 1100 tokens"},
		{"optimizer.name=sophia", "optimizer.hessian_every=2"},
	} {
		t.Run(strings.Join(overrides, " "), func(t *testing.T) {
			cfg := smallConfig(t, data, append([]string{
				"train.batch_tokens=640", "model.tie_embeddings=false", "model.layers=6",
			}, overrides...)...)
			cfg.Model.Vocab = 300
			src := dataset.NewRandom(300, cfg.Model.Context, 5)
			want, log := trained(t, cfg, src, 1, true)
			for i, schedule := range []string{"1f1b", "gpipe", "interleaved:2", "zb-h1"} {
				for _, mesh := range [][2]int{{2, 0}, {2, 1}, {4, 2}, {4, 3}, {3, 0}} {
					n, stage := mesh[0], mesh[1]
					if p := cfg.Parallel; schedule == "zb-h1" &&
						(n == 4 || p.Wire != "f32" || p.SumBlock > 1 || cfg.Train.NoiseScaleEvery > 0) {
						continue // refused
					}
					cfg.Parallel.Pipeline, cfg.Parallel.Zero, cfg.Parallel.Schedule = min(n, 3), stage, schedule
					if n == 4 {
						cfg.Parallel.Pipeline = 2
					}
					got, told := trained(t, cfg, src, n, (n+stage+i)%2 == 0)
					if got != want {
						t.Errorf("%s of %d ranks at stage %d ends with %.8s, one rank with %.8s", schedule, n, stage, got, want)
					}
					if a, b := firstDifference(told, log); a != b {
						t.Errorf("%s of %d ranks at stage %d reports\n%s\none rank reports\n%s", schedule, n, stage, a, b)
					}
				}
			}
		})
	}
}
