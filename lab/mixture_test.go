package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/corpus"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train"
)

// mixtureOptions is a search with a tiny model over two small sources, sums and digits, of which the second has a
// third of the text.
func mixtureOptions(t *testing.T, out string) MixtureOptions {
	t.Helper()
	root, r := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	var paths []string
	for i, line := range []func() string{
		func() string {
			x, y := r.IntN(40), r.IntN(40)
			return fmt.Sprintf("the sum of %d and %d is %d\n", x, y, x+y)
		},
		func() string { return fmt.Sprintf("%08d\n", r.IntN(1e8)) },
	} {
		path := filepath.Join(root, []string{"sums", "digits"}[i]+".jsonl")
		var b strings.Builder
		for range 60 {
			text := ""
			for range 10 {
				text += line()
			}
			fmt.Fprintf(&b, "{\"text\": %q}\n", text)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	text := func(paths ...string) prepare.Text {
		return prepare.Text{Paths: paths, Options: corpus.Options{TextField: "text"}}
	}
	tok, _, err := prepare.TrainTokenizer(context.Background(), text(paths...),
		tokenizer.TrainOptions{VocabSize: 272, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		dir := strings.TrimSuffix(p, ".jsonl")
		if _, _, err := prepare.BuildData(context.Background(), text(p), prepare.DataOptions{
			Dir: dir, Tokenizer: tok, ValFraction: 0.1, Threads: 1,
		}); err != nil {
			t.Fatal(err)
		}
	}
	return MixtureOptions{
		Out: out, OnPhase: func(string) {}, OnProgress: func(train.Event) {},
		Overrides: []string{
			"data.mix=sums=" + root + "/sums,digits=" + root + "/digits", "model.layers=1", "model.dim=16",
			"model.heads=1", "model.context=16", "threads=1",
			"train.steps=12", "train.batch_tokens=256", "train.eval_every=0", "train.eval_tokens=512",
			"schedule.warmup=2", "optimizer.lr=5e-3", "checkpoint.every=4",
		},
	}
}

// A search that is stopped in its proxy and called again ends with the weights of one that was not, and once it is at
// its end nothing is trained again. What it writes for a config can be trained on.
func TestDoReMiGoesOnWhereItStopped(t *testing.T) {
	root := t.TempDir()
	o := DoReMiOptions{
		MixtureOptions: mixtureOptions(t, filepath.Join(root, "whole")), Rate: 1, Smoothing: 1e-3, Rounds: 2,
	}
	for key, value := range map[string]string{
		"train.batch_ramp": "128 over 1000 tokens", "data.order": "first length over 20%", "data.skip": "3:9",
		"train.minutes": "1",
	} {
		refused := o
		refused.Overrides = append(slices.Clone(o.Overrides), key+"="+value)
		var p config.Problem
		if _, err := DoReMi(context.Background(), refused); !errors.As(err, &p) || p.Key != key ||
			run.Exists(filepath.Join(o.Out, "reference-1")) {
			t.Errorf("%s: %v, or a reference has been trained", key, err)
		}
	}
	want, err := DoReMi(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Out = filepath.Join(root, "stopped")
	ctx, stop := context.WithCancel(context.Background())
	o.OnProgress = func(p train.Event) {
		if p.DomainWeights != nil && p.Step == 6 {
			stop()
		}
	}
	if _, err := DoReMi(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped with %v", err)
	}
	steps := 0
	o.OnProgress = func(train.Event) { steps++ }
	got, err := DoReMi(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if rest := 6 + 2*12; steps != rest {
		t.Errorf("%d steps were made after the stop, %d were left", steps, rest)
	}
	for i, s := range got.Sources {
		if s.Weight != want.Sources[i].Weight {
			t.Errorf("%s has the weight %v after a stop, %v without", s.Name, s.Weight, want.Sources[i].Weight)
		}
	}
	if !slices.Equal(got.Rounds[1].Reference, got.Rounds[0].Weights) || len(got.Rounds[1].Curve) != 12 {
		t.Errorf("the second round begins with %v, not with what the first found, %v, or has not 12 steps",
			got.Rounds[1].Reference, got.Rounds[0].Weights)
	}
	steps = 0
	if _, err := DoReMi(context.Background(), o); err != nil || steps > 0 {
		t.Errorf("a finished search made %d steps: %v", steps, err)
	}
	o.Rate = 2
	if _, err := DoReMi(context.Background(), o); err == nil || !strings.Contains(err.Error(), "with rate 1") {
		t.Errorf("another rate in the same directory: %v", err)
	}
	pasted := filepath.Join(root, "pasted.yaml")
	if err := os.WriteFile(pasted, []byte(got.Config), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(pasted, o.Overrides[1:])
	if err != nil {
		t.Fatalf("%v\n%s", err, got.Config)
	}
	mix, err := cfg.Mix([]uint64{100, 100})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.Sources {
		if math.Abs(mix[0].Weights[i]-s.Weight) > 1e-3 {
			t.Errorf("%s has the weight %v in the config, %v was found", s.Name, mix[0].Weights[i], s.Weight)
		}
	}
}

// Weights are shares of rows, so natural shares and epochs count rows: with packing pad, one for each document.
func TestEpochsOfAMixtureCountRows(t *testing.T) {
	o := mixtureOptions(t, t.TempDir())
	o.Overrides = append(o.Overrides, "data.packing=pad")
	o.Budget = 16 * 540 // rows of 16 tokens: five times those of both sources together
	s, err := newSearch(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.unlock()
	m, err := s.found("test", []float64{0.25, 0.75})
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.Sources[0], m.Sources[1]
	if a.Tokens == b.Tokens || a.Rows+b.Rows > 120 || a.Rows < 40 || b.Rows < 40 {
		t.Fatalf("%d and %d rows of %d and %d tokens: the sources are no test", a.Rows, b.Rows, a.Tokens, b.Tokens)
	}
	if want := float64(a.Rows) / float64(a.Rows+b.Rows); a.Natural != want {
		t.Errorf("the natural share is %v, want %v", a.Natural, want)
	}
	if want := 0.75 * 540 / float64(b.Rows); math.Abs(b.Epochs-want) > 1e-9 {
		t.Errorf("%v epochs, want %v", b.Epochs, want)
	}
}

// Proxies are trained once: after a stop, with a last line cut short, and when more are asked for later. Proxies of
// another configuration are refused, and the message says what differs.
func TestRegMixTrainsEachProxyOnce(t *testing.T) {
	root := t.TempDir()
	var trained []int
	o := RegMixOptions{
		MixtureOptions: mixtureOptions(t, filepath.Join(root, "whole")), Proxies: 12,
		OnProxy: func(i, _ int) { trained = append(trained, i) },
	}
	want, err := RegMix(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Out, o.Proxies = filepath.Join(root, "stopped"), 10
	ctx, stop := context.WithCancel(context.Background())
	o.OnProxy = func(i, _ int) {
		if i == 5 {
			stop()
		}
	}
	if _, err := RegMix(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped with %v", err)
	}
	journal := filepath.Join(o.Out, "proxies.jsonl")
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, text[:len(text)-7], 0o666); err != nil { // the fifth is cut short
		t.Fatal(err)
	}
	unlock, err := checkpoint.Lock(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	var held *checkpoint.LockedError
	if _, err := RegMix(context.Background(), o); !errors.As(err, &held) {
		t.Errorf("a second search in the same directory: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	trained, o.OnProxy = nil, func(i, _ int) { trained = append(trained, i) }
	if _, err := RegMix(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	o.Proxies = 12
	got, err := RegMix(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(trained, []int{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("proxies %v were trained after the stop", trained)
	}
	if fmt.Sprint(got.Proxies, got.Sources, got.Rank) != fmt.Sprint(want.Proxies, want.Sources, want.Rank) {
		t.Errorf("after a stop\n%v %v\nwithout\n%v %v", got.Proxies, got.Sources, want.Proxies, want.Sources)
	}
	o.Overrides = append(o.Overrides, "train.steps=13")
	if _, err := RegMix(context.Background(), o); err == nil || !strings.Contains(err.Error(), "train.steps: 12 → 13") {
		t.Errorf("other proxies in the journal: %v", err)
	}
	o.Target = []string{"sum"}
	if _, err := RegMix(context.Background(), o); err == nil || !strings.Contains(err.Error(), `"sum"`) {
		t.Errorf("a target that is no source: %v", err)
	}
}
