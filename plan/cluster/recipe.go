package cluster

import (
	"fmt"
	"slices"
	"strings"

	"anneal/internal/nearest"
)

// A Recipe is a well-known model with the batch size and the number of tokens of its training, or usual values.
type Recipe struct {
	Shape  Shape
	Batch  int     // sequences of a step
	Tokens float64 // of the whole training
}

func llama(name string, layers, dim, heads, kv, ffn, vocab, context, batch int, tokens float64) Recipe {
	return Recipe{Shape{Name: name, Layers: layers, Dim: dim, Heads: heads, KVHeads: kv, HeadDim: 128, FFN: ffn,
		Gated: true, Rotary: true, Vocab: vocab, Context: context}, batch, tokens}
}

func gpt(name string, layers, dim, heads, vocab, context, batch int, tokens float64) Recipe {
	return Recipe{Shape{Name: name, Layers: layers, Dim: dim, Heads: heads, FFN: 4 * dim, Vocab: vocab,
		Context: context, Tied: true}, batch, tokens}
}

func experts(r Recipe, count, top, ffn, shared, dense int) Recipe {
	s := &r.Shape
	s.Experts, s.TopK, s.ExpertFFN, s.SharedFFN, s.Dense = count, top, ffn, shared, dense
	return r
}

func window(r Recipe, n int) Recipe {
	r.Shape.Window = n
	return r
}

// Recipes are the models that are known by name.
var Recipes = func() []Recipe {
	list := []Recipe{
		gpt("gpt2-124m", 12, 768, 12, 50304, 1024, 512, 10e9),
		gpt("gpt3-175b", 96, 12288, 96, 50304, 2048, 1536, 300e9),
		llama("llama2-7b", 32, 4096, 32, 32, 11008, 32000, 4096, 1024, 2e12),
		llama("llama2-13b", 40, 5120, 40, 40, 13824, 32000, 4096, 1024, 2e12),
		llama("llama2-70b", 80, 8192, 64, 8, 28672, 32000, 4096, 1024, 2e12),
		llama("llama3-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 2048, 15e12),
		llama("llama3-70b", 80, 8192, 64, 8, 28672, 128256, 8192, 2048, 15e12),
		llama("llama3-405b", 126, 16384, 128, 8, 53248, 128256, 8192, 2048, 15.6e12),
		window(llama("mistral-7b", 32, 4096, 32, 8, 14336, 32000, 8192, 512, 2e12), 4096),
		experts(llama("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, 8192, 1024, 2e12), 8, 2, 14336, 0, 0),
		experts(llama("qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 151936, 4096, 2048, 36e12), 128, 8, 768, 0, 0),
		experts(llama("qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 151936, 4096, 4096, 36e12), 128, 8, 1536, 0, 0),
		experts(llama("deepseek-v3", 61, 7168, 128, 128, 18432, 129280, 4096, 15360, 14.8e12), 256, 8, 2048, 2048, 3),
	}
	list[len(list)-1].Shape.Latent = Latent{Query: 1536, KV: 512, Rope: 64, V: 128}
	list[len(list)-1].Shape.Extra = 1
	return list
}()

// LookupRecipe returns the recipe with the given name. If there is none, the error lists the known names, and the
// caller's other names.
func LookupRecipe(name string, others ...string) (Recipe, error) {
	names := slices.Clone(others)
	for _, r := range Recipes {
		if r.Shape.Name == strings.ToLower(name) {
			return r, nil
		}
		names = append(names, r.Shape.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	hint := ""
	if near := nearest.To(strings.ToLower(name), names); near != "" {
		hint = "did you mean " + near + "? "
	}
	return Recipe{}, fmt.Errorf("there is no model %q to plan: %sknown are %s", name, hint, strings.Join(names, ", "))
}
