package train

import (
	"context"
	"math"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/torture"
	"anneal/train/traintest"
)

// Stages of a pipeline end with the bits of one rank, and report the same numbers, whatever the schedule and beside any
// data parallelism, unless the head is tied.
func TestPipelineIsTheModel(t *testing.T) {
	data := traintest.Data(t)
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
		{"model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=16",
			"train.micro_batch=1"},
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
						t.Errorf("%s of %d ranks at stage %d ends with %.8s, one rank with %.8s",
							schedule, n, stage, got, want)
					}
					if a, b := firstDifference(told, log); a != b {
						t.Errorf("%s of %d ranks at stage %d reports\n%s\none rank reports\n%s",
							schedule, n, stage, a, b)
					}
				}
			}
		})
	}
}

// Replicas of a pipeline whose gradients arrive in memory of their own, which several layers use in turn.
func TestPipelineOfReplicasIsTheModel(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.batch_tokens=1024", "model.tie_embeddings=false", "model.layers=8")
	cfg.Model.Vocab = 300
	src := dataset.NewRandom(300, cfg.Model.Context, 5)
	want, _ := trained(t, cfg, src, 1, true)
	for _, schedule := range []string{"1f1b", "gpipe", "interleaved:2"} {
		for zero := range 4 {
			cfg.Parallel.Pipeline, cfg.Parallel.Zero, cfg.Parallel.Schedule = 2, zero, schedule
			if got, _ := trained(t, cfg, src, 4, false); got != want {
				t.Errorf("%s at stage %d ends with %.8s, one rank with %.8s", schedule, zero, got, want)
			}
		}
	}
}

// A tied table has its gradient on the first stage and on the last: with the same losses and norms as on one rank, from
// every schedule, also if the two stages have unequal parts larger than the table.
func TestPipelineWithTiedEmbeddings(t *testing.T) {
	data := traintest.Data(t)
	for _, overrides := range [][]string{
		{"model.layers=6", "train.z_loss=1e-3"},
		{"model.layers=7", "model.ffn=320", "optimizer.name=adafactor"},
	} {
		cfg := smallConfig(t, data, append([]string{
			"train.batch_tokens=768", "precision=fp64", "model.tie_embeddings=true",
		}, overrides...)...)
		cfg.Model.Vocab = 300
		src := dataset.NewRandom(300, cfg.Model.Context, 5)
		want := losses(t, cfg, src, 1)
		for zero, schedule := range []string{"1f1b", "gpipe", "interleaved:2", "zb-h1"} {
			for _, n := range []int{3, 6} {
				p := &cfg.Parallel
				p.Pipeline, p.Schedule, p.Zero, p.SumBlock = 3, schedule, zero, 1
				if n == 6 && schedule == "zb-h1" {
					p.SumBlock = 3
				}
				for i, got := range losses(t, cfg, src, n) {
					if math.Abs(got-want[i]) > 1e-12*math.Abs(want[i]) {
						t.Errorf("%s of %d ranks: number %d is %v, want %v", schedule, n, i, got, want[i])
						break
					}
				}
			}
		}
	}
}

// Ranks that share rows report the routers of all tokens, and balance them as one rank does, where few tokens have a
// target and layers are dropped, too.
func TestRoutersOfSharedRows(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "model.family=qwen3_moe", "model.heads=4", "model.layers=4",
		"precision=fp64",
		"model.experts=4", "model.experts_per_token=2", "model.expert_ffn=16", "model.router_aux_loss=0.1",
		"model.router_z_loss=0.01", "train.batch_tokens=512", "memory.recompute=every:1", "model.stochastic_depth=0.3")
	cfg.Model.Vocab = 300
	src := fewTargets{dataset.NewRandom(300, cfg.Model.Context, 5), 3, 0}
	routers := func(n int) (list []float64) {
		onRanks(t, cfg, n, n == 8, func(x *Trainer) error {
			for range cfg.Train.Steps {
				e, err := x.Step(context.Background(), src)
				if err != nil {
					return err
				}
				if x.world.Rank() == 0 {
					list = append(list, e.Loss, e.GradNorm, e.RouterBalance, e.RouterZLoss)
				}
			}
			return nil
		})
		return list
	}
	want := routers(1)
	for _, m := range [][3]int{{1, 2, 1}, {1, 4, 1}, {2, 2, 1}, {1, 2, 2}, {2, 2, 2}} {
		p := &cfg.Parallel
		p.Tensor, p.Context, p.Pipeline = m[0], m[1], m[2]
		for i, got := range routers(m[0] * m[1] * m[2]) {
			if math.Abs(got-want[i]) > 1e-12*math.Abs(want[i]) {
				t.Errorf("tensor, context, pipeline = %v: number %d is %v, want %v", m, i, got, want[i])
			}
		}
	}
}

// losses runs all steps of cfg on n ranks and returns the loss and the norm of each.
func losses(t *testing.T, cfg *config.Config, src dataset.Source, n int) (list []float64) {
	t.Helper()
	onRanks(t, cfg, n, cfg.Parallel.Zero > 1, func(x *Trainer) error {
		for range cfg.Train.Steps {
			e, err := x.Step(context.Background(), src)
			if err != nil {
				return err
			}
			if x.world.Rank() == 0 {
				list = append(list, e.Loss, e.GradNorm)
			}
		}
		return nil
	})
	return list
}

// meshesOfEight are the sizes of tensor, context and pipeline of every mesh of 8 ranks.
var meshesOfEight = [][3]int{
	{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 2, 2}, {1, 8, 1}, {1, 1, 2}, {1, 1, 4},
	{1, 1, 8}, {2, 2, 1}, {4, 2, 1}, {2, 4, 1}, {2, 1, 2}, {2, 1, 4}, {4, 1, 2}, {1, 2, 2}, {1, 2, 4}, {1, 4, 2},
}

// Every way to spread 8 ranks over the axes of a mesh gives the losses and the norms of one rank. Without -long, half
// of them are tried with Llama; with the other families always three.
func TestEveryFactorisationOfEight(t *testing.T) {
	data := traintest.Data(t)
	for _, overrides := range [][]string{
		{"model.heads=8", "model.kv_heads=2", "model.dim=64", "model.ffn=64"},
		{"model.family=gpt2", "model.heads=8", "model.dim=64", "model.dropout=0.1"},
		{"model.family=anneal", "model.heads=8", "model.dim=64", "model.ffn=64", "model.stochastic_depth=0.3"},
		{"model.family=qwen3_moe", "model.heads=8", "model.dim=64", "model.experts=4", "model.experts_per_token=2",
			"model.expert_ffn=16"},
		{"model.family=gemma3", "model.heads=8", "model.dim=64", "model.ffn=64", "model.attention=window:8,full"},
	} {
		t.Run(strings.Join(overrides, " "), func(t *testing.T) {
			cfg := smallConfig(t, data, append([]string{
				"train.batch_tokens=256", "model.layers=8", "precision=fp64", "train.steps=4",
			}, overrides...)...)
			cfg.Model.Vocab = 300
			src := dataset.NewRandom(300, cfg.Model.Context, 5)
			want := losses(t, cfg, src, 1)
			for k, m := range meshesOfEight {
				if k != 6 && k != 13 && k != 16 && (cfg.Model.Family != "llama" || !torture.Sample(k/4, 3)) {
					continue
				}
				p := &cfg.Parallel
				p.Tensor, p.Context, p.Pipeline, p.Zero = m[0], m[1], m[2], k%4
				p.Attention = []string{"ring", "ulysses"}[k%2]
				p.Sequence = cfg.Model.Family != "gpt2"
				for i, got := range losses(t, cfg, src, 8) {
					if math.Abs(got-want[i]) > 1e-10*math.Abs(want[i]) {
						t.Fatalf("tensor, context, pipeline = %v: number %d is %v, want %v", m, i, got, want[i])
					}
				}
			}
		})
	}
}
