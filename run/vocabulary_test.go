package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/device/cpu"
	"anneal/model"
	"anneal/nn"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// Of a grown vocabulary each token that both have keeps its row, in the embedding, a head of its own and tables of
// values; a new one has the mean of what the old tokenizer cuts it into, a special one and padding that of all tokens.
// All else is as it was.
func TestAGrownVocabularyCarriesRowsOverByToken(t *testing.T) {
	old := traintest.Data(t)
	grown := traintest.DataWith(t, 0.1, tokenizer.TrainOptions{
		VocabSize: 340, Special: []string{"<|endoftext|>", "<|new|>"},
	})
	for name, set := range map[string][]string{
		"tied": nil, "untied": {"model.tie_embeddings=false"}, "gpt2": {"model.family=gpt2"},
		"values": {"model.family=anneal", "model.value_embeddings=all"}, "padded before": {"model.vocab=384"},
		"bigrams": {"model.family=anneal", "model.value_embeddings=none", "model.bigram=64"},
	} {
		dir, _ := trainedRun(t, old, set...)
		cfg := initConfig(t, dir, grown, "model.vocab=448")
		tr := startedFrom(t, cfg)
		was := loaded(t, dir)
		now, err := tokenizer.Load(filepath.Join(grown, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		tables := 0
		for i, p := range tr.Model().Params() {
			before := was.Model.Params()[i]
			if p.Name == "bigram" {
				trained := false
				for e := range before.Value.Len() {
					trained = trained || before.Value.Float64(e) != 0
					if p.Value.Float64(e) != 0 {
						t.Fatalf("element %d of the table of pairs is %v, want 0", e, p.Value.Float64(e))
					}
				}
				if !trained {
					t.Error("no row of pairs was trained before")
				}
				continue
			}
			if p.Name == "positions" || p.Role != nn.Embedding && p.Role != nn.Head {
				for e := range p.Value.Len() {
					if got, want := p.Value.Float64(e), before.Value.Float64(e); got != want {
						t.Fatalf("%s: element %d of %s is %v, was %v", name, e, p.Name, got, want)
					}
				}
				continue
			}
			tables++
			for id := range 448 {
				checkRow(t, name, p, before, id, was.Tokenizer, now)
			}
		}
		if want := map[string]int{"untied": 2, "values": 3}[name]; tables != max(want, 1) {
			t.Errorf("%s: %d tables of tokens", name, tables)
		}
		text := strings.Join(cfg.Remarks(), "\n")
		for _, part := range []string{
			"grows from 3", " to 448 rows: 320 tokens keep their rows", "19 new ones", "1 new special ones",
			"108 rows are padding",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the remark %q does not say %q", name, text, part)
			}
		}
		mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	}
}

// checkRow compares a row of a table of tokens with what it should be made of.
func checkRow(t *testing.T, name string, p, before *nn.Param, id int, was, now *tokenizer.Tokenizer) {
	t.Helper()
	token := now.Token(uint32(id))
	var from []uint32
	switch same, kept := was.ID(string(token)); {
	case kept && token != nil:
		from = []uint32{same}
	case token == nil || string(token) == "<|new|>":
		for i := range uint32(320) {
			from = append(from, i)
		}
	default:
		if from = was.NewEncoder().Encode(nil, token); len(from) < 2 {
			t.Fatalf("%s: the new token %q is the old tokens %v", name, token, from)
		}
	}
	if old := before.Value.Dim(0); token == nil && id < old { // padding stays where it is
		from = []uint32{uint32(id)}
	}
	cols := p.Value.Dim(1)
	for j := range cols {
		sum := 0.0
		for _, r := range from {
			sum += before.Value.Float64(int(r)*cols + j)
		}
		if got, want := p.Value.Float64(id*cols+j), float64(float32(sum/float64(len(from)))); got != want {
			t.Fatalf("%s: row %d of %s, %q, has %v at %d, want %v of the rows %v",
				name, id, p.Name, token, got, j, want, from)
		}
	}
}

// A vocabulary that is cut and one that is only padded keep the rows of their tokens: the model answers as before.
// More rows than the data needs are kept where the tokenizer is the same.
func TestACutOrPaddedVocabularyAnswersAsBefore(t *testing.T) {
	small, large := traintest.Data(t), traintest.DataWith(t, 0.1, tokenizer.TrainOptions{VocabSize: 340})
	dir, _ := trainedRun(t, large, "model.tie_embeddings=false")
	padded, _ := trainedRun(t, small, "model.vocab=384")
	for _, c := range []struct {
		from, data string
		set        []string
		rows       int
		remark     string
	}{
		{dir, small, nil, 320, "shrinks from 340 to 320 rows: 320 tokens keep their rows, 20 tokens are dropped"},
		{dir, large, []string{"model.vocab=384"}, 384,
			"grows from 340 to 384 rows: 340 tokens keep their rows, 44 rows are padding"},
		{padded, small, nil, 384, ""},
		{padded, small, []string{"model.vocab=320"}, 320, "shrinks from 384 to 320 rows: 320 tokens keep their rows"},
	} {
		cfg := initConfig(t, c.from, c.data, append(c.set, "precision=fp32")...)
		tr := startedFrom(t, cfg)
		if text := strings.Join(cfg.Remarks(), "\n"); !strings.Contains(text, c.remark) ||
			c.remark == "" && text != "" || cfg.Model.Vocab != c.rows {
			t.Errorf("%v: %d rows, remarks %q; want %d and %q", c.set, cfg.Model.Vocab, text, c.rows, c.remark)
		}
		was := loaded(t, c.from)
		now, err := tokenizer.Load(filepath.Join(c.data, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		answers := func(m *model.Decoder, tok *tokenizer.Tokenizer, ids []uint32) map[string]float64 {
			input := make([]int32, len(ids))
			for i, id := range ids {
				input[i] = int32(id)
			}
			dev, err := cpu.New(1)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			g, err := model.NewGenerator(m, tr.Policy(), dev)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			logits, list := g.Logits(input), map[string]float64{}
			for id := range tok.VocabSize() {
				list[string(tok.Token(uint32(id)))] = logits.Float64(id)
			}
			return list
		}
		text := []byte("the sum of x") // in tokens that both have
		got := answers(tr.Model(), now, now.NewEncoder().Encode(nil, text))
		want := answers(was.Model, was.Tokenizer, was.Tokenizer.NewEncoder().Encode(nil, text))
		for token, z := range got {
			if w, has := want[token]; !has || z != w {
				t.Fatalf("%v: the logit of %q is %v, was %v (%v)", c.set, token, z, w, has)
			}
		}
	}
}

// Another tokenizer than that of the weights is refused, with what to do; where it is asked for, rows go by token all
// the same.
func TestAnotherTokenizerIsRefusedUnlessAskedFor(t *testing.T) {
	data := traintest.Data(t)
	other := traintest.DataWith(t, 0.1, tokenizer.TrainOptions{VocabSize: 320, Pattern: "gpt2"})
	dir, _ := trainedRun(t, data)
	for _, load := range []func() error{
		func() error { _, err := loadInit(dir, other); return err },
		func() error {
			_, err := NewTrial(with(t, other, "init.from="+dir), nil, nil)
			return err
		},
	} {
		if err := load(); err == nil || !strings.Contains(err.Error(), "another tokenizer") ||
			!strings.Contains(err.Error(), "init.tokenizer=any") ||
			!strings.Contains(err.Error(), filepath.Join(dir, "tokenizer.json")) {
			t.Errorf("error %v", err)
		}
	}
	cfg := initConfig(t, dir, other, "init.tokenizer=any")
	if text := strings.Join(cfg.Remarks(), "\n"); !strings.Contains(text, "another tokenizer than the weights") {
		t.Errorf("the remarks are %q", text)
	}
	out := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: cfg, Dir: out})
	if _, err := Resume(context.Background(), Options{Dir: out}); err != nil {
		t.Error(err)
	}
}
