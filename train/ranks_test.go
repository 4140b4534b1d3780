package train

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"anneal/checkpoint"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
)

// ranksOf trains cfg on n ranks and returns the trainers after the last step, with the events of each.
func ranksOf(t *testing.T, cfg *config.Config, src dataset.Source, n int) ([]*Trainer, [][]Event) {
	t.Helper()
	worlds := local.New(n, local.Options{})
	trainers, events := make([]*Trainer, n), make([][]Event, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			if errs[r] = func() error {
				dev, err := cpu.New(1)
				if err != nil {
					return err
				}
				t.Cleanup(dev.Close)
				x, err := NewRank(cfg, dev, worlds[r])
				if err != nil {
					return err
				}
				t.Cleanup(x.Close)
				trainers[r] = x
				for range cfg.Train.Steps {
					e, err := x.Step(context.Background(), src)
					if err != nil {
						return err
					}
					events[r] = append(events[r], e)
				}
				return nil
			}(); errs[r] != nil {
				worlds[r].Abort(errs[r])
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d of %d: %v", r, n, err)
		}
	}
	return trainers, events
}

// assembled hashes weights and state from what every rank owns, and fails unless that is every element once.
func assembled(t *testing.T, ranks []*Trainer) [2]string {
	t.Helper()
	whole, seen := map[string]*checkpoint.Tensor{}, map[string][]bool{}
	var order []string
	for _, x := range ranks {
		for _, p := range x.Owned() {
			size := p.Value.DType().Size()
			n := 1
			for _, d := range p.Shape {
				n *= d
			}
			w := whole[p.Name]
			if w == nil {
				w = &checkpoint.Tensor{
					Name: p.Name, DType: strings.ToUpper(p.Value.DType().String()), Shape: slices.Clone(p.Shape),
					Data: make([]byte, n*size), Optim: p.Kind == OfOptimizer, Average: p.Kind == OfAverage,
				}
				whole[p.Name], seen[p.Name] = w, make([]bool, n)
				order = append(order, p.Name)
			}
			copy(w.Data[p.From*size:p.To*size], p.Value.Raw())
			for i := p.From; i < p.To; i++ {
				if seen[p.Name][i] {
					t.Fatalf("element %d of %s has two owners", i, p.Name)
				}
				seen[p.Name][i] = true
			}
		}
	}
	var list []checkpoint.Tensor
	for _, name := range order {
		if i := slices.Index(seen[name], false); i >= 0 {
			t.Fatalf("element %d of %s has no owner", i, name)
		}
		list = append(list, *whole[name])
	}
	w, o, _ := checkpoint.HashTensors(list)
	return [2]string{w, o}
}

// A run ends with the same bits of weights and state, and reports the same numbers at every step, on any number of
// ranks at any stage of ZeRO.
func TestAnyRanksGiveTheSameBits(t *testing.T) {
	data := testData(t)
	for _, overrides := range [][]string{
		{"precision=bf16"},
		{"precision=fp32", "model.tie_embeddings=false", "optimizer.name=muon"},
		{"precision=fp16", "model.family=gpt2", "train.z_loss=1e-3"},
		{"model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=16"},
		{"model.family=gemma3", "model.attention=window:8,full"},
		{"model.family=anneal", "model.dropout=0.1", "model.stochastic_depth=0.5"},
		{"precision=bf16_sr", "memory.recompute=every:1", "optimizer.name=adam8bit", "model.layers=3"},
		{"train.batch_ramp=256 over 1100 tokens", "model.attention=linear:gated,window:8", "model.qk_norm=true"},
	} {
		cfg := smallConfig(t, data, append(overrides, "train.batch_tokens=640")...)
		cfg.Model.Vocab = 300
		src := dataset.NewRandom(300, cfg.Model.Context, 5)
		one, steps := ranksOf(t, cfg, src, 1)
		want := assembled(t, one)
		for n := 2; n <= 4; n++ {
			for stage := range 4 {
				cfg.Parallel.Zero = stage
				t.Run(fmt.Sprint(overrides, n, " ranks, stage ", stage), func(t *testing.T) {
					ranks, events := ranksOf(t, cfg, src, n)
					if got := assembled(t, ranks); got != want {
						t.Errorf("the hashes are %.8s, of one rank %.8s", got, want)
					}
					for r := range events {
						for i, e := range events[r] {
							if a, b := fmt.Sprint(e), fmt.Sprint(steps[0][i]); a != b {
								t.Fatalf("rank %d, step %d:\n%s, one rank\n%s", r, i, a, b)
							}
						}
					}
				})
			}
		}
	}
}
