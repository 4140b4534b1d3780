package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/prepare"
	"anneal/train/traintest"
)

// testTrainer returns a fresh trainer on a data set.
func testTrainer(t testing.TB, cfg *config.Config) (*Trainer, *prepare.Corpus) {
	t.Helper()
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	tr, err := New(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr, c
}

// held returns the held-out text of a corpus in samples of the trainer's context.
func held(t testing.TB, tr *Trainer, c *prepare.Corpus) dataset.HeldOut {
	t.Helper()
	text, err := c.HeldOut(tr.Model().Config.Context)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The size of a batch decides neither which tokens are scored nor what they cost.
func TestEvaluationDoesNotDependOnTheMicroBatch(t *testing.T) {
	data := traintest.Data(t)
	for _, precision := range []string{"bf16", "fp32", "fp64"} {
		for _, limit := range []int{0, 1, 500} {
			var want EvalResult
			for _, rows := range []int{1, 3, 8} {
				cfg := traintest.Config(data)
				cfg.Precision, cfg.Train.MicroBatch, cfg.Train.BatchTokens = precision, rows, rows*cfg.Model.Context
				tr, c := testTrainer(t, cfg)
				got, err := tr.Evaluate(context.Background(), held(t, tr, c), limit)
				if err != nil {
					t.Fatal(err)
				}
				if rows == 1 {
					want = got
				}
				if got.Tokens != want.Tokens || got.Bytes != want.Bytes ||
					math.Abs(got.Loss-want.Loss) > 1e-12*want.Loss {
					t.Errorf("%s, limit %d: micro-batches of %d give %+v, of 1 %+v", precision, limit, rows, got, want)
				}
				if context := int64(cfg.Model.Context); limit > 0 &&
					got.Tokens != (int64(limit)+context-1)/context*context {
					t.Errorf("limit %d: %d tokens scored, want whole samples of %d", limit, got.Tokens, context)
				}
			}
		}
	}
}

// A model whose logits are all 0 spends log2 V bits on every token, whatever the text.
func TestBitsPerByteOfAUniformModel(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	tr, c := testTrainer(t, cfg)
	for _, p := range tr.Model().Params() {
		clear(p.Value.F32())
	}
	got, err := tr.Evaluate(context.Background(), held(t, tr, c), 0)
	if err != nil {
		t.Fatal(err)
	}
	// The text that is scored, put together again from its tokens.
	val, err := c.First.ValLoader(cfg.Model.Context)
	if err != nil {
		t.Fatal(err)
	}
	var b dataset.Batch
	if err := val.Batch(&b, 0, int(val.Windows())); err != nil {
		t.Fatal(err)
	}
	eot, _ := c.Tokenizer.EndOfText()
	var ids []uint32
	tokens := 0
	for _, target := range b.Targets {
		if target == dataset.Ignore {
			continue
		}
		tokens++
		if uint32(target) != eot {
			ids = append(ids, uint32(target))
		}
	}
	text := c.Tokenizer.Decode(nil, ids)
	vocab := float64(cfg.Model.Vocab)
	want := math.Log2(vocab) * float64(tokens) / float64(len(text))
	if got.Tokens != int64(tokens) || got.Bytes != int64(len(text)) {
		t.Errorf("%d tokens of %d bytes scored, want %d of %d", got.Tokens, got.Bytes, tokens, len(text))
	}
	if math.Abs(got.BitsPerByte-want) > 1e-6*want || math.Abs(got.Loss-math.Log(vocab)) > 1e-6 {
		t.Errorf("%v bits per byte at a loss of %v, want %v at ln %v = %v",
			got.BitsPerByte, got.Loss, want, vocab, math.Log(vocab))
	}
}

// twoDocuments is a source of rows of two documents of equal length; the first token is given.
type twoDocuments struct {
	context int
	first   uint32
}

func (s twoDocuments) Context() int { return s.context }

func (s twoDocuments) Vocab() int { return 64 }

func (s twoDocuments) Batch(b *dataset.Batch, _ uint64, rows int) error {
	n := rows * s.context
	b.Rows, b.Context = rows, s.context
	b.Tokens, b.Targets, b.DocStart = make([]uint32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		b.Tokens[i], b.Targets[i] = uint32(i*7%64), int32(i*5%64)
		if i%s.context >= s.context/2 {
			b.DocStart[i] = int32(s.context / 2)
		}
	}
	b.Tokens[0] = s.first
	return nil
}

// With data.document_mask the second document of a row does not see the first; without it attention is plain causal,
// and positions count from the start of the row.
func TestDocumentMaskSeparatesDocuments(t *testing.T) {
	p := loadParity(t)
	for _, mask := range []bool{true, false} {
		tr, _ := parityTrainer(t, p, 0, "fp64", 1, 2)
		tr.documents = mask
		losses := func(first uint32) []float64 {
			if err := tr.load(twoDocuments{tr.batch.T, first}, 0); err != nil {
				t.Fatal(err)
			}
			tr.tape.Reset(false)
			tr.Model().Loss(tr.tape, tr.batch)
			return slices.Clone(tr.batch.Losses.F64())
		}
		a, b := losses(1), losses(2)
		half := tr.batch.T / 2
		if sees := a[half] != b[half]; sees == mask {
			t.Errorf("document_mask %v: the second document sees the first: %v", mask, sees)
		}
		for i, pos := range tr.batch.Seq.Pos.I32() {
			at, want := i%tr.batch.T, int32(i%tr.batch.T)
			if mask && at >= half {
				want -= int32(half)
			}
			if start := tr.batch.Start.I32()[i]; pos != want || start != int32(at)-want {
				t.Fatalf("document_mask %v: token %d has position %d in a document from %d, want %d from %d",
					mask, i, pos, start, want, at-int(want))
			}
			if got, want := fmt.Sprint(tr.batch.Tokens.I32()[i], tr.batch.Targets.I32()[i]),
				fmt.Sprint(tr.data.Tokens[i], tr.data.Targets[i]); got != want {
				t.Fatalf("token and target %d are %s, the source gave %s", i, got, want)
			}
		}
	}
}

// Ranks that score batches side by side count the same targets as one rank, also where a limit ends within a batch.
func TestALimitOfTargetsIsExactOnAnyRanks(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t))
	c, err := prepare.OpenCorpus(cfg) // which derives the vocabulary
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for _, limit := range []int{1, cfg.Model.Context - 1, 3*cfg.Train.MicroBatch*cfg.Model.Context + 5, 1 << 20} {
		var want EvalResult
		for n := 1; n <= 3; n++ {
			results := make([]EvalResult, n)
			onRanks(t, cfg, n, true, func(x *Trainer) error {
				c, err := prepare.OpenCorpus(cfg.Clone())
				if err != nil {
					return err
				}
				defer c.Close()
				text, err := c.HeldOut(cfg.Model.Context)
				if err != nil {
					return err
				}
				x.Exact = true
				results[x.world.Rank()], err = x.Evaluate(context.Background(), text, limit)
				return err
			})
			if n == 1 {
				want = results[0]
			}
			for r, got := range results {
				if !reflect.DeepEqual(got, want) {
					t.Errorf("limit %d: rank %d of %d has %+v, one rank %+v", limit, r, n, got, want)
				}
			}
		}
		if limit < 1<<20 && want.Tokens != int64(limit) {
			t.Errorf("limit %d: %d targets are scored", limit, want.Tokens)
		}
	}
}

// If the context of one rank ends, the evaluation ends on all, also on ranks that share a model without a replica.
func TestAStopEndsTheEvaluationOfAllRanks(t *testing.T) {
	for _, mesh := range []string{"", "parallel.tensor=2", "parallel.context=2", "parallel.pipeline=2"} {
		cfg := smallConfig(t, traintest.Data(t), strings.Fields("parallel.ranks=2 "+mesh)...)
		c, err := prepare.OpenCorpus(cfg) // which derives the vocabulary
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		onRanks(t, cfg, 2, true, func(x *Trainer) error {
			c, err := prepare.OpenCorpus(cfg.Clone())
			if err != nil {
				return err
			}
			defer c.Close()
			text, err := c.HeldOut(cfg.Model.Context)
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if x.world.Rank() == 1 {
				stop()
			}
			if _, err := x.Evaluate(ctx, text, 0); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the evaluation ends with %v", err)
			}
			return nil
		})
	}
}

// evaluated evaluates a trainer of two threads on the held-out text of cfg: limit tokens of it, or all if limit is 0.
func evaluated(t *testing.T, cfg *config.Config, limit int) (*Trainer, EvalResult) {
	t.Helper()
	c, err := prepare.OpenCorpus(cfg) // which derives the vocabulary
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := c.HeldOut(cfg.Model.Context)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainerOf(t, cfg, 2)
	r, err := tr.Evaluate(t.Context(), text, limit)
	if err != nil {
		t.Fatal(err)
	}
	return tr, r
}

// Rows of whole documents tell of every document that fits whether it is right; windows of the text cut some.
func TestWholeDocumentsAreAnswers(t *testing.T) {
	for packing, whole := range map[string]bool{"concat": false, "best_fit": true, "pad": true} {
		cfg := smallConfig(t, traintest.Data(t), "train.eval_packing="+packing, "train.eval_answers=true",
			"model.context=256", "train.batch_tokens=1024")
		_, r := evaluated(t, cfg, 0)
		if r.Answers.Documents == 0 || (r.Answers.Cut == 0) != whole {
			t.Errorf("%s: %+v", packing, r.Answers)
		}
	}
}

// The size of activations begins with that of the embeddings of the first batch, and has one for each layer. It is not
// measured in training.
func TestEvaluationMeasuresTheStream(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "precision=fp64")
	tr, r := evaluated(t, cfg, cfg.Train.MicroBatch*cfg.Model.Context)
	table, sum := tr.Model().Params()[0].Value, 0.0 // [V, D]
	for _, id := range tr.data.Tokens {
		for d := range table.Dim(1) {
			x := table.Float64(int(id)*table.Dim(1) + d)
			sum += x * x
		}
	}
	want := math.Sqrt(sum / float64(len(tr.data.Tokens)*table.Dim(1)))
	if got := r.ActivationRMS; len(got) != 3 || math.Abs(got[0]-want) > 1e-12*want || got[1] <= 0 || got[1] == got[2] {
		t.Errorf("sizes %v, want %v of the embeddings", got, want)
	}
	if tr.sizes != nil {
		t.Error("training would measure, too")
	}
}
