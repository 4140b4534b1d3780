package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
	"anneal/train"
)

// domainData builds three data sets with one tokenizer, as data.mix has them: sums, which take long to learn, random
// digits, which nothing learns, and one line again and again, which is learned at once.
func domainData(t testing.TB) string {
	t.Helper()
	texts := []struct {
		name string
		docs iter.Seq2[[]byte, error]
	}{
		{"sums", documents(150)},
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

// domainConfig takes 12 rows of 32 tokens a step, in micro-batches of 4.
func domainConfig(mix string, steps int) *config.Config {
	cfg := tinyConfig("")
	override(cfg, "data.mix="+mix)
	cfg.Train.BatchTokens, cfg.Train.MicroBatch = 12*32, 4
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Checkpoint.Every = steps, 0, 10
	cfg.Schedule.Warmup = 2
	cfg.Resolve()
	return cfg
}

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
	mix, dir := domainData(t), t.TempDir()
	reference := filepath.Join(dir, "reference")
	mustRun(t, Options{Config: domainConfig(mix, steps), Dir: reference})
	return proxy{
		domainConfig(mix, steps), filepath.Join(dir, "proxy"),
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
