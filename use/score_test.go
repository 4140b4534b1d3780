package use

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/model"
	"anneal/run"
	"anneal/train/traintest"
)

// A score is the sum of the log-probabilities that a generator gives the tokens one by one, in stretches of the
// context.
func TestScoreIsTheSumOverTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cfg := traintest.Config(traintest.Data(t))
	traintest.Override(cfg, "precision=fp64", "train.steps=8", "train.eval_every=8")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	texts := []string{"the sum of 3 and 4 is 7\n", "", strings.Repeat("the sum of 12 and 30 is 42\n", 9), "é"}
	scores, err := r.Score(context.Background(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.NewGenerator(r.Model, r.Policy, r.dev)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i, text := range texts {
		ids, err := r.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for n := 1; n < len(ids); n++ {
			p, _ := logProb(g.Logits(ids[(n-1)/r.Context()*r.Context():n]), int(ids[n]))
			want += p
		}
		s := scores[i]
		bits := -want / math.Ln2 / float64(max(len(text), 1))
		if math.Abs(s.LogProb-want) > 1e-9*max(1, -want) || s.Tokens != len(ids)-1 || s.Bytes != len(text) ||
			math.Abs(s.BitsPerByte-bits) > 1e-9*max(1, bits) {
			t.Errorf("%.20q: %+v, want %v nats, %v bits a byte", text, s, want, bits)
		}
	}
	if len(texts[2]) <= r.Context() || scores[2].Tokens <= r.Context() {
		t.Errorf("%d tokens are no more than the context", scores[2].Tokens)
	}
	if err := r.Tokenizer.SetAround(nil, nil); err != nil {
		t.Fatal(err)
	}
	bare, err := r.Score(context.Background(), texts[0])
	if err != nil {
		t.Fatal(err)
	}
	ids := append([]int32{r.end()}, encoded(t, r, texts[0])...)
	want := 0.0
	for n := 1; n < len(ids); n++ {
		p, _ := logProb(g.Logits(ids[:n]), int(ids[n]))
		want += p
	}
	s := bare[0]
	if s.Tokens != len(ids)-1 || math.Abs(s.LogProb-want) > 1e-9*math.Abs(want) || s.Bytes != len(texts[0]) {
		t.Errorf("with nothing around a text: %+v, want %v nats for %d tokens", s, want, len(ids)-1)
	}
	if _, err := r.Score(context.Background(), ""); !errors.Is(err, ErrNoText) {
		t.Errorf("nothing at all: %v", err)
	}
}

// encoded returns the tokens of a text alone.
func encoded(t *testing.T, r *Trained, text string) []int32 {
	t.Helper()
	ids, err := r.Encode(text, true)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
