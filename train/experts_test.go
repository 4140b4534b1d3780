package train

import (
	"math"
	"slices"
	"testing"

	"anneal/dataset"
	"anneal/train/traintest"
)

// fewTargets keeps the target of one in every tokens, and none in one of the two micro-batches of four rows.
type fewTargets struct {
	dataset.Source
	every, without uint64 // without: 1 or 2; 0 for neither
}

func (s fewTargets) Batch(b *dataset.Batch, first uint64, n int) error {
	err := s.Source.Batch(b, first, n)
	for i := range b.Targets {
		if uint64(i)%s.every != 0 || first/4+1 == s.without {
			b.Targets[i] = dataset.Ignore
		}
	}
	return err
}

// routerGradient returns what one of the routers' losses, with the coefficient 1, adds to the gradient of the mean loss
// at the first router.
func routerGradient(t *testing.T, data, key string, src dataset.Source, factors []float64) []float64 {
	t.Helper()
	var part []float64
	for _, coefficient := range []string{"1", "0"} {
		cfg := smallConfig(t, data, "model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2",
			"model.expert_ffn=16", "model.vocab=320", "precision=fp64", "model.router_aux_loss=0",
			"model.router_z_loss=0", key+"="+coefficient)
		tr := trainerOf(t, cfg, 1)
		tr.accum, tr.length = 2, 32
		if factors != nil {
			tr.robust = &robust{factors: factors}
		}
		sums, err := tr.gradient(t.Context(), src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tr.model.Params() {
			if p.Name != "layers.0.mlp.router" {
				continue
			}
			if part == nil {
				part = make([]float64, p.Grad.Len())
			}
			for i, g := range p.Grad.F64() {
				if coefficient == "0" {
					g = -g
				}
				part[i] += g / float64(sums.targets)
			}
		}
	}
	return part
}

// The losses of routers are means like the cross-entropy: where targets are few, they weigh as much as where every
// token has one. A micro-batch counts by its targets; one without any counts nothing, however its domain is weighted.
func TestRouterLossesWeighAsMuchWithFewTargets(t *testing.T) {
	data := traintest.Data(t)
	tokens := traintest.Tokens{VocabSize: 320, Length: 32, BatchSize: 8}
	for _, key := range []string{"model.router_aux_loss", "model.router_z_loss"} {
		want := routerGradient(t, data, key, tokens, nil)
		if !slices.ContainsFunc(want, func(g float64) bool { return math.Abs(g) > 1e-4 }) {
			t.Fatalf("%s has the gradient %v", key, want)
		}
		check := func(what string, got, want []float64) {
			t.Helper()
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-12 {
					t.Fatalf("%s, %s: element %d of the gradient is %v, want %v", key, what, i, got[i], want[i])
				}
			}
		}
		check("a target in 16 tokens", routerGradient(t, data, key, fewTargets{tokens, 16, 0}, nil), want)
		first := routerGradient(t, data, key, fewTargets{tokens, 1, 2}, nil)
		check("the second domain without targets, weighted",
			routerGradient(t, data, key, fewTargets{tokens, 1, 2}, []float64{1, 50}), first)
		second := routerGradient(t, data, key, fewTargets{tokens, 1, 1}, nil)
		for i := range second {
			second[i] = (first[i] + second[i]) / 2
		}
		check("both halves of the batch", want, second)
	}
}

// Figures of routers are means over the tokens that were routed: stochastic depth, which drops layers, leaves them
// where they are.
func TestRouterFiguresAreMeansOverTheLayersThatRan(t *testing.T) {
	data, src := traintest.Data(t), traintest.Tokens{VocabSize: 320, Length: 32, BatchSize: 8}
	figures := func(depth string) (balance, z float64) {
		cfg := smallConfig(t, data, "model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2",
			"model.expert_ffn=16", "model.vocab=320", "train.micro_batch=1", "optimizer.lr=1e-9", "train.steps=20",
			"model.stochastic_depth="+depth)
		tr := trainerOf(t, cfg, 1)
		for range 10 {
			e, err := tr.Step(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			balance, z = balance+e.RouterBalance/10, z+e.RouterZLoss/10
		}
		return balance, z
	}
	balance, z := figures("0")
	b, droppedZ := figures("0.9")
	if math.Abs(b/balance-1) > 0.05 || math.Abs(droppedZ/z-1) > 0.05 {
		t.Errorf("with half of the branches dropped the balance is %v and log²Z %v, without %v and %v",
			b, droppedZ, balance, z)
	}
}
