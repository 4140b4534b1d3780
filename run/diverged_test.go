package run

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/prepare"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// Weights that are not finite are never used, not even by AllowOlder, and the tensor is named.
func TestWeightsThatAreNotFiniteAreRefused(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		o := Options{Config: traintest.Config(traintest.Data(t)), Dir: filepath.Join(t.TempDir(), "run")}
		s, err := newSession(o.Config, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.create(false); err != nil {
			t.Fatal(err)
		}
		p := s.trainer.Model().Params()[1]
		p.Value.SetFloat64(7, bad)
		if err := s.saveLast(); err != nil {
			t.Fatal(err)
		}
		s.close()
		w, err := OpenWeights(o.Dir, WeightOptions{AllowOlder: true})
		if err != nil {
			t.Fatal(err)
		}
		dev, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Load(dev)
		w.Close()
		dev.Close()
		if ruin := (*DivergedRunError)(nil); !errors.As(err, &ruin) ||
			!strings.Contains(err.Error(), "weights of "+p.Name+" are NaN or infinite") {
			t.Errorf("a weight of %v: %v", bad, err)
		}
	}
}

// Checkpoints of a run that diverged are averaged only if that is allowed, and never if a weight is not finite.
func TestADivergedRunIsNotAveragedUnawares(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Schedule.Warmup = 2, 1, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	if err := runDir(dir).markDiverged(&DivergedError{Step: 3, First: 3, Skips: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	out, ruin := filepath.Join(t.TempDir(), "mean"), (*DivergedRunError)(nil)
	if _, err := AverageCheckpoints(dir, 2, out, false); !errors.As(err, &ruin) || Exists(out) {
		t.Errorf("%v; a run was made: %v", err, Exists(out))
	}
	if r, err := AverageCheckpoints(dir, 2, out, true); err != nil || len(r.Steps) != 2 {
		t.Errorf("allowed: %+v, %v", r, err)
	}
	s, err := newSession(mustLoad(t, dir), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	files, err := s.dir.readFiles()
	if err := errors.Join(err, s.openStore(files.origin()), s.restore()); err != nil {
		t.Fatal(err)
	}
	s.trainer.Model().Params()[1].Value.SetFloat64(7, math.NaN())
	if err := s.store.Save(2, s.last.Progress.Tokens, s.tensors, &s.last); err != nil {
		t.Fatal(err)
	}
	s.store.Wait()
	out = filepath.Join(t.TempDir(), "mean")
	if _, err := AverageCheckpoints(dir, 2, out, true); !errors.As(err, &ruin) || Exists(out) ||
		!strings.Contains(err.Error(), "are NaN or infinite") {
		t.Errorf("of weights that are NaN: %v; a run was made: %v", err, Exists(out))
	}
}

// Of every type of weights, NaN and infinities are found, and nothing else.
func TestNonFiniteElementsAreCounted(t *testing.T) {
	native := binary.NativeEndian
	var f32, f64, bf16, f16 []byte
	for _, x := range []float64{
		1, math.Inf(1), -2, math.NaN(), math.MaxFloat32, math.Inf(-1), math.SmallestNonzeroFloat32, 0,
	} {
		f32, f64 = native.AppendUint32(f32, math.Float32bits(float32(x))), native.AppendUint64(f64, math.Float64bits(x))
	}
	for _, x := range []uint16{0x3f80, 0x7f80, 0xff80, 0x7fc1, 0x7f7f} {
		bf16 = native.AppendUint16(bf16, x)
	}
	for _, x := range []uint16{0x3c00, 0x7c00, 0xfc00, 0x7e01, 0x7bff} {
		f16 = native.AppendUint16(f16, x)
	}
	for dtype, data := range map[string][]byte{"F32": f32, "F64": f64, "BF16": bf16, "F16": f16} {
		if n := nonFinite(data, dtype); n != 3 {
			t.Errorf("%s: %d of 3 were found", dtype, n)
		}
	}
	if n := nonFinite([]byte{0xff, 0xff, 0xff, 0xff}, "U8"); n != 0 {
		t.Errorf("of bytes %d are NaN", n)
	}
}

// Data of prompts alone teaches nothing: that is told at once, and ends the run instead of a loss that is no number.
func TestBatchesWithoutATargetEndTheRun(t *testing.T) {
	prompts := func() iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for d, err := range traintest.Documents(200) {
				if !yield(append(bytes.ReplaceAll(d, []byte("is"), nil), "is"...), err) {
					return
				}
			}
		}
	}
	dir := t.TempDir()
	tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 320}, prompts())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	build := dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, path), ValFraction: 0, PromptEnd: "is",
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), build, prompts()); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	var s said
	cfg := traintest.Config(dir)
	cfg.Train.BatchTokens, cfg.Train.MicroBatch, cfg.Guard.MaxSkips = 32, 1, 3
	_, err = Run(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Warn: s.warn})
	if data := (*dataset.Error)(nil); !errors.As(err, &data) ||
		!strings.Contains(err.Error(), "3 steps in a row had no target") {
		t.Errorf("%v", err)
	}
	if text := s.all(); strings.Count(text, "has no target") != 1 {
		t.Errorf("it says %s", text)
	}
}

// A run does not start from the weights of one that diverged, unless their step is named.
func TestNoRunStartsFromOneThatDivergedUnawares(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	if err := runDir(dir).markDiverged(&DivergedError{Step: 3, First: 3, Skips: 1, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	text := (&DivergedError{Step: 3, First: 3, Skips: 1}).Error()
	if !strings.Contains(text, ": an update was skipped because") {
		t.Error(text)
	}
	_, err := openInitial(config.Init{From: dir})
	if ruin := (*DivergedRunError)(nil); !errors.As(err, &ruin) || !strings.Contains(err.Error(), "--init-step 2") {
		t.Errorf("the newest weights: %v", err)
	}
	if w, err := openInitial(config.Init{From: dir, Step: 2}); err != nil || w.step != 2 {
		t.Errorf("the weights of step 2: %v", err)
	}
	// Step 0 cannot be named: there it would stand for the newest, which is refused.
	if err := runDir(dir).checkDiverged(0); err == nil || strings.Contains(err.Error(), "--init-step") ||
		!strings.Contains(err.Error(), "anneal rewind "+dir+" --to N --skip FROM:TO") {
		t.Errorf("the newest weights are those of step 0: %v", err)
	}
}

// A resume that cannot begin leaves a diverged run a diverged one, and what exit.json says of the command before.
func TestOnlyAResumeThatBeginsUnmarksADivergedRun(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: smallConfig(t, traintest.Data(t)), Dir: dir})
	err := runDir(dir).markDiverged(&DivergedError{Step: 4, Dir: dir})
	if err != nil || !WriteExit(dir, Exit{Code: 5}) {
		t.Fatal("cannot mark the run", err)
	}
	o := Options{Dir: dir, Overrides: []string{
		"log.sinks=prometheus", "log.prometheus_listen=" + strings.TrimPrefix(taken.URL, "http://"),
	}}
	if _, err := Resume(context.Background(), o); err == nil {
		t.Fatal("the run begins although its port is taken")
	}
	if ruin := (*DivergedRunError)(nil); !errors.As(runDir(dir).checkDiverged(4), &ruin) {
		t.Error("the run does not count as diverged any more")
	}
	if e, err := readExit(runDir(dir).exit()); e.Code != 5 {
		t.Errorf("exit.json has code %d, %v", e.Code, err)
	}
	taken.Close()
	if _, err := Resume(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if err := runDir(dir).checkDiverged(4); err != nil {
		t.Error(err)
	}
	if _, err := readExit(runDir(dir).exit()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("exit.json is still there: %v", err)
	}
}
