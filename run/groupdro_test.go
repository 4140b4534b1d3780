package run

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

// The weight of what can be learned is the largest, that of noise and of what is learned at once falls below an equal
// share.
func TestGroupDROFindsWhatCanBeLearned(t *testing.T) {
	p := newProxy(t, 120)
	w := mustRun(t, Options{Config: p.cfg, Dir: p.dir, DRO: &p.dro}).DomainWeights
	t.Logf("weights of sums, noise and the simple: %.4f", w)
	if w[0] < 0.45 || w[1] > 0.3 || w[2] > 0.3 {
		t.Errorf("the weights of sums, noise and the simple are %.4f, want most for the first", w)
	}
	if sum := w[0] + w[1] + w[2]; math.Abs(sum-1) > 1e-12 {
		t.Errorf("the weights sum to %v", sum)
	}
	curve, err := DomainWeights(p.dir, func(text string) { t.Error(text) })
	if err != nil || len(curve) != 120 {
		t.Fatalf("metrics.jsonl has the weights of %d steps of 120: %v", len(curve), err)
	}
	for i := range w {
		mean := 0.0
		for _, alpha := range curve {
			mean += alpha[i] / 120
		}
		if math.Abs(mean-w[i]) > 1e-12 {
			t.Errorf("domain %d: the mean over the steps is %v, the result %v", i, mean, w[i])
		}
	}
}

// proxy is a run that weighs three domains, with the reference it takes.
type proxy struct {
	cfg *config.Config
	dir string
	dro DRO
}

func newProxy(t *testing.T, steps int) proxy {
	t.Helper()
	mix, dir := traintest.Domains(t), t.TempDir()
	reference := filepath.Join(dir, "reference")
	mustRun(t, Options{Config: traintest.DomainConfig(mix, steps), Dir: reference})
	return proxy{
		traintest.DomainConfig(mix, steps), filepath.Join(dir, "proxy"),
		DRO{Reference: reference, GroupDRO: train.GroupDRO{Rate: 1, Smoothing: 1e-3}},
	}
}

// A proxy that is stopped and resumed, with another number of threads, ends with the same weights of domains and the
// same model, bit for bit. Without its reference it cannot be resumed, and an ordinary run does not become a proxy.
func TestGroupDROResumesBitForBit(t *testing.T) {
	p := newProxy(t, 20)
	want := mustRun(t, Options{Config: p.cfg.Clone(), Dir: p.dir + "-whole", DRO: &p.dro, Threads: 1})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := Options{Config: p.cfg, Dir: p.dir, DRO: &p.dro, Threads: 2, OnProgress: func(p train.Event) {
		if p.Step == 13 {
			cancel()
		}
	}}
	if r, err := Run(ctx, o); err != nil || !r.Interrupted {
		t.Fatalf("not stopped: %v, %v", r, err)
	}
	if _, err := Resume(context.Background(), Options{Dir: p.dir}); !errors.Is(err, train.ErrNeedsReference) {
		t.Errorf("resuming without the reference gives %v", err)
	}
	if _, err := Resume(context.Background(), Options{Dir: p.dro.Reference, DRO: &p.dro}); err == nil {
		t.Error("an ordinary run was resumed as a proxy")
	}
	var refused *RewindError
	if _, err := Rewind(p.dir, RewindOptions{To: 0}); !errors.As(err, &refused) {
		t.Errorf("taken back to its beginning, where nothing tells it from an ordinary run: %v", err)
	}
	if _, err := Resume(context.Background(), Options{Dir: killedAtOnce(t, p)}); !errors.Is(err,
		train.ErrNeedsReference) {
		t.Errorf("resuming one that was killed before its first step, without the reference, gives %v", err)
	}
	o.OnProgress = nil
	got, err := Resume(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.DomainWeights, want.DomainWeights) {
		t.Errorf("weights %v after a stop, %v without", got.DomainWeights, want.DomainWeights)
	}
	if got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash {
		t.Error("the model differs after a stop")
	}
}

// killedAtOnce is a proxy that has not come to a step.
func killedAtOnce(t *testing.T, p proxy) string {
	t.Helper()
	s, err := newSession(p.cfg.Clone(), Options{Dir: p.dir + "-killed", DRO: &p.dro})
	if err == nil {
		defer s.close()
		err = s.create(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Dir
}
