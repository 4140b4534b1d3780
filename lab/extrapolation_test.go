package lab

import (
	"context"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/torture"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/use"
)

// phrases generates documents of 600 letters: a random phrase of 5 to 10 of them again and again, and after 36 letters
// another. What comes next stands a phrase earlier; older phrases mislead.
func phrases(documents int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		for range documents {
			var text []byte
			for len(text) < 600 {
				phrase := make([]byte, 5+r.IntN(6))
				for i := range phrase {
					phrase[i] = "abcdefgh"[r.IntN(8)]
				}
				for i := range 36 {
					text = append(text, phrase[i%len(phrase)])
				}
			}
			if !yield(text, nil) {
				return
			}
		}
	}
}

// phraseData builds a data set of them in which every letter is a token.
func phraseData(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 257}, phrases(1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Build(context.Background(), dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, "tokenizer.json"), ValFraction: 0.1,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}, phrases(1500))
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Beyond the 64 tokens of its training a model with rotary positions predicts much worse than within them. YaRN,
// without any training on longer rows, mends most of that; with ALiBi it does not come up.
func TestALiBiAndYaRNExtrapolateWhereRoPEDoesNot(t *testing.T) {
	torture.Long(t)
	data, dir := phraseData(t), t.TempDir()
	for _, positions := range []string{"rope", "alibi"} {
		cfg, err := config.Load("", []string{
			"data.path=" + data, "model.positions=" + positions, "model.layers=2", "model.dim=64", "model.heads=4",
			"model.context=64", "optimizer.lr=4e-3", "train.steps=600", "train.batch_tokens=2048", "schedule.warmup=20",
			"train.eval_every=0", "checkpoint.every=0",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Run(context.Background(), run.Options{
			Config: cfg, Dir: filepath.Join(dir, positions),
		}); err != nil {
			t.Fatal(err)
		}
	}
	// score returns bits per byte at positions of training, and at those from there to four times as far.
	score := func(positions, scaling string) (within, beyond float64) {
		r, err := use.OpenWith(filepath.Join(dir, positions),
			use.OpenOptions{Reach: use.Reach{Context: "4x", RopeScaling: scaling}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		e, err := r.Evaluate(context.Background(), data, 20_000, nil)
		if err != nil {
			t.Fatal(err)
		}
		var nats float64
		var bytes int64
		for _, p := range e.ByPosition[1:] {
			nats += p.Loss * float64(p.Tokens)
			bytes += p.Bytes
		}
		within, beyond = e.ByPosition[0].BitsPerByte, dataset.BitsPerByte(nats, uint64(bytes))
		t.Logf("%s %s: %.3f bits/byte at positions of training, %.3f beyond", positions, scaling, within, beyond)
		return within, beyond
	}
	ropeWithin, rope := score("rope", "")
	_, yarn := score("rope", "yarn:4")
	alibiWithin, alibi := score("alibi", "")
	if rope < ropeWithin+0.5 {
		t.Errorf("plain rotary positions go from %.3f to %.3f bits/byte beyond the training length: nothing to mend",
			ropeWithin, rope)
	}
	if yarn > rope-0.3 {
		t.Errorf("beyond the training length yarn:4 has %.3f bits/byte, plain rotary positions %.3f", yarn, rope)
	}
	if alibi > rope-0.3 || alibi > alibiWithin+0.15 {
		t.Errorf("alibi goes from %.3f to %.3f bits/byte beyond the training length, rotary positions to %.3f",
			alibiWithin, alibi, rope)
	}
}
