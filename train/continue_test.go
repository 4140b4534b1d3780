package train

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"anneal/model"
	"anneal/train/traintest"
)

// Prompts of any length are continued as a generator continues them one by one, with its cache: to the end of a text,
// of the context, or of what was asked for, also while training rows are short. Nothing else of the trainer changes.
func TestContinueWritesWhatAGeneratorWrites(t *testing.T) {
	prompts := [][]int32{{3}, {1, 2, 3, 4, 5, 6, 7}, {60, 9, 33}, make([]int32, 30), make([]int32, 40), {63, 62}}
	for i := range prompts[4] {
		prompts[4][i] = int32(i)
	}
	for family, warmup := range map[string]string{"llama": "", "gpt2": "8 over 90%", "anneal": "16 over 90%"} {
		keys := []string{
			"model.family=" + family, "precision=fp32", "train.micro_batch=4", "train.length_warmup=" + warmup,
		}
		tr, src := optimizerTrainer(t, "adamw", keys...)
		steps(t, tr, src, 12)
		g, err := model.NewGenerator(tr.Model(), tr.Policy(), tr.dev)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ended := 0
		for _, s := range []model.Sampling{{}, {Temperature: 2, TopK: 40, Seed: 8}} {
			c := Continuation{Tokens: 9, End: 11, Sampling: s}
			made, err := tr.Continue(prompts, c)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range prompts {
				ids, want := slices.Clone(p[max(0, len(p)-31):]), []int32(nil)
				for len(want) < c.Tokens && len(ids) <= 32 {
					id := g.Next(ids, s)
					if id == c.End {
						ended++
						break
					}
					ids, want = append(ids, id), append(want, id)
				}
				if !slices.Equal(made[i], want) {
					t.Errorf("%s, %+v: after %v it writes %v, a generator %v", family, s, p, made[i], want)
				}
			}
		}
		if family == "llama" && ended == 0 {
			t.Error("no text ended before its length")
		}
		other, _ := optimizerTrainer(t, "adamw", keys...)
		steps(t, other, src, 12)
		steps(t, other, src, 3)
		steps(t, tr, src, 3)
		if hashes(tr) != hashes(other) {
			t.Errorf("%s: a trainer that has written trains to other bits", family)
		}
	}
}

// Ranks that own parts of the weights write what one rank writes.
func TestContinueOnRanks(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "model.vocab=320", "parallel.zero=3")
	var want [][]int32
	for n := 1; n <= 3; n++ {
		texts := make([][][]int32, n)
		onRanks(t, cfg, n, true, func(x *Trainer) (err error) {
			src := traintest.Tokens{VocabSize: 320, Length: 32, BatchSize: 8}
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
			texts[x.world.Rank()], err = x.Continue([][]int32{{1, 2, 3}, {300}},
				Continuation{Tokens: 9, End: -1, Sampling: model.Sampling{Temperature: 1, Seed: 3}})
			return err
		})
		if n == 1 {
			want = texts[0]
		}
		for r, got := range texts {
			if len(want[0]) != 9 || !reflect.DeepEqual(got, want) {
				t.Errorf("rank %d of %d writes %v, one rank %v", r, n, got, want)
			}
		}
	}
}
