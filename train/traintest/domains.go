package traintest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
)

// Domains builds three data sets with one tokenizer, as data.mix has them: sums, which take long to learn, random
// digits, which nothing learns, and one line again and again, which is learned at once.
func Domains(t testing.TB) string {
	t.Helper()
	texts := []struct {
		name string
		docs iter.Seq2[[]byte, error]
	}{
		{"sums", Documents(150)},
		{"noise", drawn(40, func(r *rand.Rand) string { return fmt.Sprintf("%020d\n", r.Uint64N(1e18)) })},
		{"simple", drawn(40, func(*rand.Rand) string { return "the sum of sums\n" })},
	}
	tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 280},
		func(yield func([]byte, error) bool) {
			for _, text := range texts {
				for doc, err := range text.docs {
					if !yield(doc, err) {
						return
					}
				}
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	var mix []string
	root := t.TempDir()
	for _, text := range texts {
		dir := filepath.Join(root, text.name)
		opt := dataset.BuildOptions{
			Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, ""), ValFraction: 0.1,
			NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
		}
		if _, err := dataset.Build(context.Background(), opt, text.docs); err != nil {
			t.Fatal(err)
		}
		if err := tok.Save(filepath.Join(dir, "tokenizer.json")); err != nil {
			t.Fatal(err)
		}
		mix = append(mix, text.name+"="+dir)
	}
	return strings.Join(mix, ",")
}

// drawn is n documents of 30 random lines.
func drawn(n int, line func(*rand.Rand) string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := rand.New(rand.NewPCG(3, 4))
		for range n {
			var b bytes.Buffer
			for range 30 {
				b.WriteString(line(r))
			}
			if !yield(b.Bytes(), nil) {
				return
			}
		}
	}
}

// DomainConfig takes 12 rows of 32 tokens a step, in micro-batches of 4.
func DomainConfig(mix string, steps int) *config.Config {
	cfg := Config("")
	Override(cfg, "data.mix="+mix)
	cfg.Train.BatchTokens, cfg.Train.MicroBatch = 12*32, 4
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Checkpoint.Every = steps, 0, 10
	cfg.Schedule.Warmup = 2
	cfg.Resolve()
	return cfg
}
