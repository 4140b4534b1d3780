package claims

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/config"
	"anneal/dataset"
	"anneal/lab"
	"anneal/lab/study"
	"anneal/prepare"
	"anneal/prepare/synth"
	"anneal/run"
)

// An Env holds what claims share while they are measured.
type Env struct {
	dir *study.Dir
}

// scratch runs f with a directory that is removed afterwards.
func (e *Env) scratch(f func(dir string) error) error {
	dir, err := os.MkdirTemp(e.dir.Path, "scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(dir)
}

// study runs f with the directory of a study, which is removed afterwards.
func (e *Env) study(name string, options any, f func(d *study.Dir) error) error {
	return e.scratch(func(dir string) error {
		d, err := study.Open(filepath.Join(dir, name), name, options)
		if err != nil {
			return err
		}
		defer d.Close()
		return f(d)
	})
}

// sums returns the directory of a data set of generated additions, in bytes.
func (e *Env) sums(ctx context.Context) (string, error) {
	dir := e.dir.File("sums")
	if dataset.Exists(dir) {
		return dir, nil
	}
	var text synth.Text
	for a := range 40 {
		for b := range 40 {
			text.Train = append(text.Train, fmt.Sprintf("%d+%d=%d\n", a, b, a+b))
		}
	}
	text.Val = text.Train[:40]
	_, err := text.Build(ctx, dir, false)
	return dir, err
}

// source returns the directory of a data set of the source of the Go standard library, as `anneal data sample` makes
// it.
func (e *Env) source(ctx context.Context) (string, error) {
	dir := e.dir.File("source")
	if dataset.Exists(dir) {
		return dir, nil
	}
	_, err := prepare.SampleData(ctx, prepare.SampleOptions{
		Dir: dir, OnStage: func(string) {}, OnText: func(string, int64, int64) {},
	})
	return dir, err
}

// weights trains a small model for five steps on generated text and returns the hash of its weights.
func (e *Env) weights(ctx context.Context, overrides ...string) (hash string, err error) {
	data, err := e.sums(ctx)
	if err != nil {
		return "", err
	}
	err = e.scratch(func(dir string) error {
		cfg, err := config.Sources{Overrides: slices.Concat([]string{
			"data.path=" + data, "model.layers=2", "model.dim=32", "model.heads=2", "model.context=32",
			"train.batch_tokens=512", "train.micro_batch=4", "train.steps=5", "train.eval_every=0",
		}, overrides)}.Load()
		if err != nil {
			return err
		}
		r, err := run.Run(ctx, run.Options{Config: cfg, Dir: filepath.Join(dir, "run")})
		if err == nil {
			hash = r.WeightsHash
		}
		return err
	})
	return hash, err
}

// small is a model of about half a million parameters and its training on 600,000 tokens of the source of the Go
// standard library: a third of a minute on one core.
var small = []string{
	"model.layers=4", "model.dim=64", "model.heads=2", "model.ffn=192", "model.context=256", "train.steps=150",
	"train.batch_tokens=4096", "train.eval_every=0", "train.eval_tokens=131072", "optimizer.lr=4e-3",
	"schedule.name=cosine", "schedule.warmup=15", "checkpoint.every=0", "precision=bf16",
}

// diverged is the loss that counts for a run that the guard stopped, in bits per byte: that of random bytes.
const diverged = 8

// seeds are the seeds that the runs of a comparison are repeated with.
const seeds = 2

// bits trains the small model with each list of overrides and each seed, as many at a time as there are cores, and
// returns the held-out bits per byte by list and seed. Each run is trained only once, even if several claims compare
// it.
func (e *Env) bits(ctx context.Context, variants ...[]string) ([][]float64, error) {
	if _, err := e.source(ctx); err != nil {
		return nil, err
	}
	bits := make([][]float64, len(variants))
	for i := range bits {
		bits[i] = make([]float64, seeds)
	}
	err := lab.Together(ctx, len(variants)*seeds, 0, func(ctx context.Context, i int) error {
		result, err := e.trained(ctx, i%seeds+1, variants[i/seeds])
		if err == nil {
			bits[i/seeds][i%seeds] = diverged
			if result != nil {
				bits[i/seeds][i%seeds] = result.ValBitsPerByte
			}
		}
		return err
	})
	return bits, err
}

// trained trains the small model with overrides. The result is nil if the guard stopped the run.
func (e *Env) trained(ctx context.Context, seed int, overrides []string) (*run.Result, error) {
	data := e.dir.File("source")
	cfg, err := config.Sources{Overrides: slices.Concat([]string{"data.path=" + data}, small,
		[]string{fmt.Sprint("seed=", seed)}, overrides)}.Load()
	if err != nil {
		return nil, err
	}
	result, err := e.dir.Train(ctx, runName(seed, overrides), cfg)
	var away *run.DivergedError
	var before *run.DivergedRunError
	if errors.As(err, &away) || errors.As(err, &before) {
		return nil, nil
	}
	return result, err
}

// runName returns the directory name of a run, valid in every file system.
func runName(seed int, overrides []string) string {
	name := strings.Join(slices.Concat([]string{fmt.Sprint("run-", seed)}, overrides), "-")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("=: %/[]", r) {
			return '-'
		}
		return r
	}, name)
}

// mean returns the mean over seeds.
func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// better returns by how many percent the mean of x is below that of base.
func better(base, x []float64) float64 { return 100 * (1 - mean(x)/mean(base)) }
