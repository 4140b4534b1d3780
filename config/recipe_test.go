package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/model"
)

func load(t *testing.T, s Sources) *Config {
	t.Helper()
	s.Planning = true
	c, err := s.Load()
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return c
}

// Every recipe loads, names its paper, and says of each number where it is from.
func TestRecipesSayWhereTheirNumbersAreFrom(t *testing.T) {
	for _, name := range Recipes() {
		c := load(t, Sources{Recipe: name})
		notes, err := RecipeNotes(name)
		if err != nil || len(notes) < 3 || !strings.Contains(notes[0], ":") ||
			!strings.Contains(strings.Join(notes, " "), "ot disclosed") {
			t.Errorf("%s: notes %q, %v", name, notes, err)
		}
		n := 0
		for key, from := range c.origins {
			if from.Recipe == name {
				n++
				if from.Source == "" || !strings.HasPrefix(from.String(), "recipe "+name+": ") {
					t.Errorf("%s: %s has no source: %+v", name, key, from)
				}
			}
		}
		if n < 20 {
			t.Errorf("%s: %d values", name, n)
		}
		for _, key := range []string{
			"model.layers", "model.dim", "model.heads", "model.kv_heads", "model.ffn", "model.context", "model.vocab",
			"train.steps", "train.batch_tokens", "train.clip", "optimizer.lr", "optimizer.weight_decay",
			"schedule.name", "schedule.warmup", "schedule.final_ratio",
		} {
			if c.origins[key].Recipe != name {
				t.Errorf("%s says nothing of %s", name, key)
			}
		}
	}
}

func TestFilesAndOverridesReplaceARecipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("model:\n  layers: 7\n  context: 1024\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := load(t, Sources{Recipe: "llama2-70b", File: file, Overrides: []string{"model.context=512"}})
	if m := c.Model; m.Layers != 7 || m.Context != 512 || m.Dim != 8192 {
		t.Errorf("layers %d, context %d, dim %d; want 7 of the file, 512 of the override, 8192 of the recipe",
			m.Layers, m.Context, m.Dim)
	}
	for key, want := range map[string]string{
		"model.layers": file + ":2", "model.context": "command line", "model.dim": "recipe llama2-70b: params.json",
		"seed": "default",
	} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
	again, err := parse(c.YAML(), "config.yaml", []string{"data.path=data"})
	if err != nil || again.Model.Differences(c.Model) != nil || fmt.Sprint(again.Train) != fmt.Sprint(c.Train) ||
		fmt.Sprint(again.Schedule) != fmt.Sprint(c.Schedule) {
		t.Errorf("read back: %v\n%+v\n%+v", err, again, c)
	}
}

func TestSourcesThatCannotWork(t *testing.T) {
	for want, s := range map[string]Sources{
		"try llama2-70b; there are ":  {Recipe: "llama-70b"},
		"--scale 10 needs a recipe":   {Scale: 10},
		"--scale 0.5 is not a number": {Recipe: "llama2-7b", Scale: 0.5},
		"data.path is not set":        {Recipe: "llama2-7b"},
		"does not divide model.heads": {Recipe: "llama2-70b", Overrides: []string{"model.kv_heads=7"},
			Planning: true},
		"train.batch_tokens = 100000 is no": {Recipe: "llama2-70b", Overrides: []string{"train.batch_tokens=100000"},
			Planning: true},
	} {
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one that says %q", s, err, want)
		}
	}
	if _, err := (Sources{Overrides: []string{"model.layers=2"}, Planning: true}).Load(); err == nil ||
		!strings.Contains(err.Error(), "data.path is not set") {
		t.Errorf("planning without a vocabulary: %v", err)
	}
}

// Scaled down a recipe keeps its ratios as far as whole heads and layers allow, its tokens for each parameter and its
// decay; its rate rises; and the smallest model is one that can be trained.
func TestScaledRecipesKeepTheirRatios(t *testing.T) {
	blocks := func(m model.Config) float64 {
		kv := float64(m.KVHeads) / float64(m.Heads)
		return float64(m.Layers) * float64(m.Dim) * (float64(m.Heads*m.HeadDim)*(2+2*kv) + 3*float64(m.FFN))
	}
	near := func(got, want, factor float64) bool { return math.Abs(math.Log(got/want)) <= math.Log(factor) }
	for _, name := range Recipes() {
		was := load(t, Sources{Recipe: name})
		for _, scale := range []float64{8, 100, 1000, 30_000, 1e6} {
			is := load(t, Sources{Recipe: name, Scale: scale})
			a, b := was.Model, is.Model
			if float64(was.Tokens())/scale < 10_000 {
				continue // no run at all
			}
			slack := 1.4
			if b.Dim < 128 || b.HeadDim <= 8 {
				slack = 3 // whole heads of eight elements
			}
			const smallest = 20_000 // one layer of four such heads
			if blocks(a)/scale > smallest && !near(blocks(b)*scale, blocks(a), slack) {
				t.Errorf("%s ÷ %g: %.4g parameters in blocks, want about %.4g", name, scale, blocks(b), blocks(a)/scale)
			}
			if a.Heads*b.KVHeads != b.Heads*a.KVHeads {
				t.Errorf("%s ÷ %g: %d heads with %d of keys, the recipe has %d with %d",
					name, scale, b.Heads, b.KVHeads, a.Heads, a.KVHeads)
			}
			if !near(float64(b.FFN)/float64(b.Dim), float64(a.FFN)/float64(a.Dim), 1.1) {
				t.Errorf("%s ÷ %g: ffn %d at width %d, the recipe has %d at %d",
					name, scale, b.FFN, b.Dim, a.FFN, a.Dim)
			}
			if !near(float64(is.Tokens())*scale, float64(was.Tokens()), 1.2) {
				t.Errorf("%s ÷ %g: %d tokens, want about %.4g", name, scale, is.Tokens(), float64(was.Tokens())/scale)
			}
			if lr := is.Optimizer.LR; lr < was.Optimizer.LR || lr > max(maxSmallLR, was.Optimizer.LR) {
				t.Errorf("%s ÷ %g: rate %v, the recipe has %v", name, scale, lr, was.Optimizer.LR)
			}
			if is.Optimizer.WeightDecay != was.Optimizer.WeightDecay || is.Schedule.Warmup < 1 ||
				is.Schedule.Warmup*3 > is.Train.Steps {
				t.Errorf("%s ÷ %g: decay %v, warmup %d of %d steps",
					name, scale, is.Optimizer.WeightDecay, is.Schedule.Warmup, is.Train.Steps)
			}
			if from := is.Origin("model.dim"); from.Recipe != name || !strings.HasPrefix(from.Source, "scaled down, ") {
				t.Errorf("%s ÷ %g: width from %q", name, scale, from)
			}
		}
	}
}
