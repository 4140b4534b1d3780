package use

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
	"anneal/train/traintest"
)

// Evaluating needs a validation split and nothing else: here the training split is shorter than one sample.
func TestEvaluationNeedsNoTrainingData(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), t.TempDir()+"/run"
	cfg.Train.Steps, cfg.Model.Context, cfg.Train.BatchTokens, cfg.Train.MicroBatch = 1, 1024, 1024, 1
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	held := t.TempDir()
	opt := dataset.BuildOptions{
		Dir: held, Tokenizer: prepare.DatasetTokenizer(r.Tokenizer, held+"/tokenizer.json"), ValFraction: 0.5,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return r.Tokenizer.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), opt, traintest.Documents(4)); err != nil {
		t.Fatal(err)
	}
	if err := r.Tokenizer.Save(held + "/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	planned := int64(0)
	got, err := r.Evaluate(context.Background(), held, 0, func(done, total int64) { planned = total })
	if err != nil || got.Tokens == 0 || got.Bytes == 0 {
		t.Errorf("scored %+v, %v", got, err)
	}
	if planned < got.Tokens || planned >= got.Tokens+int64(cfg.Model.Context) {
		t.Errorf("progress spoke of %d tokens, %d were scored in windows of %d", planned, got.Tokens, cfg.Model.Context)
	}
	cfg.Data.Path = held
	var unfit *dataset.Error
	if _, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: t.TempDir() + "/run"}); !errors.As(err,
		&unfit) {
		t.Errorf("trained on a split that is shorter than one sample: %v", err)
	}
}

// What is scored is exactly what was asked for, whatever the micro-batch, and as much of each source; the loss is that
// of these targets.
func TestEvaluationOfATrainedModelIsExact(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: with(t, data, "train.steps=2", "precision=fp32"), Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	evaluate := func(limit int, sources ...config.Source) train.EvalResult {
		t.Helper()
		e, err := r.EvaluateSources(context.Background(), sources, limit, func(done, total int64) {
			if done > total {
				t.Errorf("limit %d: %d of %d tokens done", limit, done, total)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	all := evaluate(0, config.Source{Path: data})
	one := evaluate(1, config.Source{Path: data})
	rows := r.Config.Model.Context * r.Config.Train.MicroBatch
	for _, limit := range []int{
		1, 7, rows - 1, rows, rows + 1, int(all.Tokens) - 1, int(all.Tokens), int(all.Tokens) + 1, 1 << 40,
	} {
		got := evaluate(limit, config.Source{Path: data})
		if want := min(int64(limit), all.Tokens); got.Tokens != want {
			t.Errorf("limit %d: %d targets scored, want %d", limit, got.Tokens, want)
		}
		if limit < 8 { // the sums of a few targets, by hand
			nats, bytes := firstLosses(t, r, data, limit)
			if math.Abs(got.Loss-nats/float64(limit)) > 1e-6*got.Loss || got.Bytes != bytes {
				t.Errorf("limit %d: loss %v over %d bytes, want %v over %d",
					limit, got.Loss, got.Bytes, nats/float64(limit), bytes)
			}
		}
	}
	for _, limit := range []int{1, 2, 7, 100} {
		got := evaluate(limit, config.Source{Name: "a", Path: data}, config.Source{Name: "b", Path: data})
		if got.Tokens != int64(limit) || len(got.Sources) != min(limit, 2) ||
			got.Sources[0].Tokens != int64(limit+1)/2 {
			t.Errorf("limit %d of two sources: %d targets scored, by source %+v", limit, got.Tokens, got.Sources)
		}
		if limit == 1 && got.Loss != one.Loss {
			t.Errorf("one target has the loss %v, of two sources %v", one.Loss, got.Loss)
		}
	}
}

// firstLosses sums the losses of the first targets of a validation split, and their bytes.
func firstLosses(t *testing.T, r *Trained, data string, targets int) (nats float64, bytes int64) {
	t.Helper()
	c, e, err := r.evaluatorOf([]config.Source{{Path: data}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer e.Close()
	val, err := c.First.ValLoader(r.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch, losses, err := e.Losses(val, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		nats += losses.Float64(i)
		bytes += int64(c.TokenBytes[batch.Targets[i]])
	}
	return nats, bytes
}

// Where no target stands for text there is an error, or during training a warning, and never an infinite number.
func TestAHeldOutSplitWithoutTextIsSaid(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: with(t, data, "train.steps=1"), Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	silent := t.TempDir()
	encode := func() func([]uint32, []byte) []uint32 { return r.Tokenizer.NewEncoder().Encode }
	opt := dataset.BuildOptions{
		Dir: silent, Tokenizer: prepare.DatasetTokenizer(r.Tokenizer, silent), ValFraction: 0.3, NewEncoder: encode,
		PromptEnd: "=>", TokenizerFile: r.Tokenizer,
	}
	texts := func(yield func([]byte, error) bool) {
		for i := range 100 {
			if !yield(fmt.Appendf(nil, "question %d, and a long one, so that there is enough of it =>", i), nil) {
				return
			}
		}
	}
	if _, err := dataset.Build(context.Background(), opt, texts); err != nil {
		t.Fatal(err)
	}
	var unfit *dataset.Error
	for _, limit := range []int{0, 1, 100} {
		if e, err := r.Evaluate(context.Background(), silent, limit, nil); !errors.As(err, &unfit) ||
			!strings.Contains(err.Error(), "stands for text") {
			t.Errorf("limit %d: %+v, %v", limit, e, err)
		}
	}
	_, err = r.EvaluateSources(context.Background(),
		[]config.Source{{Name: "a", Path: data}, {Name: "b", Path: silent}}, 0, nil)
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), silent) {
		t.Errorf("one of two: %v", err)
	}
	warned := 0
	result := mustRun(t, run.Options{Config: with(t, silent, "train.steps=4", "train.eval_every=1"),
		Dir: filepath.Join(t.TempDir(), "run"), Warn: func(text string) {
			if strings.Contains(text, "stands for text") {
				warned++
			}
		}})
	if warned != 1 || !math.IsNaN(result.ValLoss) || !math.IsNaN(result.ValBitsPerByte) {
		t.Errorf("%d warnings, validation loss %v, %v bits/byte", warned, result.ValLoss, result.ValBitsPerByte)
	}
}
