package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/config"
	"anneal/internal/torture"
	"anneal/train/traintest"
)

// Any mesh that the checks accept trains, with any recipe, to the losses and norms of one rank.
func TestTortureAnyMesh(t *testing.T) {
	data := traintest.Data(t)
	torture.Run(t, 6, func(r *rand.Rand) (fault, outcome string) {
		recipe, mesh := anyRecipe(r), anyMesh(r)
		alone, err := recipeConfig(t, data, recipe)
		if err != nil {
			return "a recipe that one rank does not run", "refused"
		}
		cfg, err := recipeConfig(t, data, append(slices.Clone(recipe), mesh...))
		if err != nil {
			return "a mesh that cannot run its recipe", "refused"
		}
		words := strings.Join(append(mesh, recipe...), " ")
		want, err := trained(t, alone)
		if err != nil {
			t.Fatalf("one rank: %v\n%s", err, words)
		}
		got, err := trained(t, cfg)
		if refused := (config.Problem{}); errors.As(err, &refused) {
			return "a mesh that cannot run its recipe", "refused"
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, words)
		}
		for i := range want {
			for _, key := range []string{"loss", "grad_norm", "val_loss"} {
				a, _ := got[i][key].(float64)
				b, _ := want[i][key].(float64)
				if !(math.Abs(a-b) <= 1e-8*math.Abs(b)) {
					t.Fatalf("%s of step %d is %v, want %v\n%s", key, i+1, a, b, words)
				}
			}
		}
		return "a mesh that can run its recipe", "the losses of one rank"
	})
}

// recipeConfig is a small run in FP64.
func recipeConfig(t *testing.T, data string, keys []string) (*config.Config, error) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("precision: fp64\nmodel: {dim: 64, context: 32}\ndata: {path: %s}\n"+
		"train: {steps: 3, batch_tokens: 768, micro_batch: 4, eval_every: 3, eval_tokens: 256}\n"+
		"schedule: {warmup: 1}\n",
		data)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, keys)
}

// trained returns the metrics of a run.
func trained(t *testing.T, cfg *config.Config) ([]map[string]any, error) {
	dir, ended := filepath.Join(t.TempDir(), "run"), make(chan error, 1)
	go func() {
		_, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Threads: 8})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			if Exists(dir) {
				t.Errorf("the run wrote something before it failed: %v", err)
			}
			return nil, err
		}
		return readMetrics(t, dir), nil
	case <-time.After(2 * time.Minute):
		return nil, fmt.Errorf("the ranks still wait for each other")
	}
}

// anyRecipe draws what a run computes.
func anyRecipe(r *rand.Rand) []string {
	one := func(key string, values ...string) string { return key + "=" + values[r.IntN(len(values))] }
	heads := []string{"2", "4", "8"}[r.IntN(3)]
	keys := []string{
		one("model.family", "llama", "gpt2", "anneal", "gemma3", "qwen3_moe"), "model.heads=" + heads,
		one("model.layers", "2", "3", "4", "6"), one("optimizer.name", "adamw", "adam8bit", "adam", "sgd", "lion",
			"ademamix", "adafactor", "muon", "soap", "schedulefree", "sophia"),
		one("model.ffn", "48", "480"), one("memory.recompute", "none", "selective", "every_layer", "sqrt"),
		one("train.micro_batch", "1", "2", "4"), one("data.packing", "concat", "best_fit", "pad"),
	}
	for _, sometimes := range [][]string{
		{one("model.kv_heads", "1", "2", heads)},
		{one("model.tie_embeddings", "true", "false")},
		{one("model.attention", "full", "window:8", "longformer:8:4", "linear", "window:8,full")},
		{one("model.positions", "rope", "alibi", "learned", "none")},
		{"model.dropout=0.1"}, {"model.stochastic_depth=0.2"}, {"model.mup=true"}, {"model.qk_norm=true"},
		{"model.attention_sinks=true"}, {"model.attention_softcap=0.5"},
		{"model.attention=linear,full", "model.short_conv=4"},
		{"model.attention=longformer:8:4", "model.longformer_global_projections=true"}, {"model.router_aux_loss=0"},
		{"model.logit_softcap=15"}, {one("model.zero_init", "none", "residual", "both")}, {"train.z_loss=1e-3"},
		{"average.ema=0.9"},
		{"train.noise_scale_every=1"}, {"optimizer.decay_embeddings=false"}, {"optimizer.cautious_decay=true"},
		{"train.clip=0.1"}, {"train.clip=0"}, {"data.document_mask=false"}, {"train.length_warmup=16 over 2 steps"},
		{"train.batch_ramp=384 until 700"}, {"model.rope_layout=interleaved"}, {"model.x0_skip=true"},
		{"model.bigram=100"}, {"model.smear=true"}, {"memory.offload=optimizer"}, {"guard.replay_every=2"},
		{"memory.recompute=every_layer", "memory.offload=checkpoints"}, {"parallel.sum_block=2"},
		{"optimizer.name=muon", "optimizer.normuon=true"},
	} {
		if r.IntN(6) == 0 {
			keys = append(keys, sometimes...)
		}
	}
	return keys
}

// anyMesh draws how at most eight ranks share a run.
func anyMesh(r *rand.Rand) []string {
	one := func(values ...int) int { return values[r.IntN(len(values))] }
	tensor, context, pipeline, data := 8, 8, 8, 8
	for tensor*context*pipeline*data > 8 || tensor*context*pipeline*data == 1 {
		tensor, context, pipeline, data = one(1, 1, 2, 4, 3), one(1, 1, 2, 4), one(1, 2, 3, 4), one(1, 2, 3)
	}
	keys := []string{fmt.Sprint("parallel.ranks=", tensor*context*pipeline*data)}
	if data*context > 1 {
		keys = append(keys, fmt.Sprint("parallel.zero=", r.IntN(4)))
	}
	if tensor > 1 {
		keys = append(keys, fmt.Sprint("parallel.tensor=", tensor), fmt.Sprint("parallel.sequence=", r.IntN(2) == 0))
	}
	if context > 1 {
		keys = append(keys, fmt.Sprint("parallel.context=", context),
			"parallel.attention="+[]string{"ring", "ulysses"}[r.IntN(2)])
	}
	if pipeline > 1 {
		schedule := []string{"gpipe", "1f1b", "zb-h1", "interleaved:2"}[r.IntN(4)]
		keys = append(keys, fmt.Sprint("parallel.pipeline=", pipeline), "parallel.schedule="+schedule)
		if schedule == "zb-h1" && data*context > 1 {
			keys = append(keys, "parallel.sum_block=24") // all micro-batches of a rank, or more
		}
	}
	return keys
}
