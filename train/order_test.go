package train

import (
	"context"
	"errors"
	"slices"
	"testing"

	"anneal/dataset"
	"anneal/train/traintest"
)

// scoredData is testData with the scores "length" and "noise".
func scoredData(t testing.TB) string {
	t.Helper()
	dir := traintest.Data(t)
	set, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	length := dataset.Scores{Name: "length"}
	noise := dataset.Scores{Name: "noise"}
	i := uint32(1)
	for tokens, err := range set.Documents(false) {
		if err != nil {
			t.Fatal(err)
		}
		i *= 2654435761
		length.Values, noise.Values = append(length.Values, float32(len(tokens))), append(noise.Values, float32(i>>8))
	}
	if err := errors.Join(set.WriteScores(length), set.WriteScores(noise)); err != nil {
		t.Fatal(err)
	}
	return dir
}

const orderOfTest = "data.order=first length over 40% by root, last noise over 30%"

// A length warmup cuts the rows of the order and changes none of them: step for step the same tokens are read, every
// target once, in shorter sequences.
func TestLengthWarmupCutsTheRowsOfTheOrder(t *testing.T) {
	data := scoredData(t)
	read := func(overrides ...string) (rows [][]uint32, lengths []int) {
		cfg := with(t, data, append(overrides, orderOfTest, "train.micro_batch=8")...)
		c := openedCorpus(t, cfg)
		tr := trainerOf(t, cfg, 1)
		for range cfg.Train.Steps {
			if _, err := tr.Step(context.Background(), c.Train); err != nil {
				t.Fatal(err)
			}
			if n := tr.data.Valid(); n != cfg.Train.BatchTokens {
				t.Errorf("%v: %d targets in a step, want %d", overrides, n, cfg.Train.BatchTokens)
			}
			rows, lengths = append(rows, slices.Clone(tr.data.Tokens)), append(lengths, tr.batch.T)
		}
		return rows, lengths
	}
	whole, full := read()
	cut, short := read("train.length_warmup=8 over 10")
	if slices.Equal(full, short) {
		t.Error("no sequence is shorter: the comparison shows nothing")
	}
	for i := range whole {
		if !slices.Equal(whole[i], cut[i]) {
			t.Errorf("step %d reads other tokens in sequences of %d than in sequences of %d", i+1, short[i], full[i])
		}
	}
}
