package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare/synth"
	"anneal/run"
)

// improvement is a loop on sums of one digit: sixty seeds, ten held out.
func improvement(t *testing.T) ImproveOptions {
	t.Helper()
	dir := t.TempDir()
	text, err := synth.Addition{Digits: 1, Train: 60, Val: 10, Seed: 1}.Text()
	if err == nil {
		_, err = text.Build(t.Context(), filepath.Join(dir, "seeds"), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + filepath.Join(dir, "seeds"), "data.packing=pad", "threads=1", "precision=fp32", "model.layers=1",
		"model.dim=32", "model.heads=2", "model.context=8", "model.positions=learned", "optimizer.lr=3e-3",
		"schedule.warmup=4", "train.steps=60", "train.batch_tokens=256", "train.micro_batch=32", "train.eval_every=0",
	}})
	if err != nil {
		t.Fatal(err)
	}
	o := ImproveOptions{
		Dir: filepath.Join(dir, "loop"), Config: cfg, Rounds: 2, PromptEnd: "=",
		Verify: func(context.Context, string, string) (Verdict, error) { return Accepted, nil },
	}
	for x := range 10 {
		for y := range 10 {
			o.Questions = append(o.Questions, Question{Prompt: fmt.Sprintf("%d+%d=", x, y)})
		}
	}
	return o
}

// Each round has its data, what was kept and a run; held-out questions are not asked; a loop that was stopped goes on,
// and one that has ended asks and trains nothing.
func TestALoopGoesOnWhereItWasStopped(t *testing.T) {
	o := improvement(t)
	o.Rounds = 1
	var asked atomic.Int64
	o.Verify = func(_ context.Context, prompt, _ string) (Verdict, error) {
		if asked.Add(1) == 30 {
			return Rejected, errors.New("stopped")
		}
		return Verdict(prompt[0] % 2), nil // Rejected or Accepted
	}
	rounds, err := Improve(t.Context(), o)
	if err == nil || len(rounds) != 1 || math.IsNaN(rounds[0].ValLoss) {
		t.Fatalf("%+v: %v", rounds, err)
	}
	o.Rounds = 2
	rounds, err = Improve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range rounds[1:] {
		if r.Sampled != 90 || r.HeldBack != 10 || r.Kept == 0 || r.Accepted+r.Rejected+r.Unfinished != 90 {
			t.Errorf("%+v", r)
		}
		kept, err := os.ReadFile(filepath.Join(o.Dir, fmt.Sprintf("round-%d", n+1), "kept.jsonl"))
		if err != nil || strings.Count(string(kept), "\n") != r.Kept {
			t.Errorf("round %d kept %d: %v\n%s", n+1, r.Kept, err, kept)
		}
		set, err := dataset.Open(filepath.Join(o.Dir, fmt.Sprintf("round-%d", n+1), "data"))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		m := set.Manifest
		if int(m.Train.Documents) != 60+r.Kept || m.Val.Documents != 10 || m.Train.PromptTokens != 4*m.Train.Documents {
			t.Errorf("round %d has %+v", n+1, m)
		}
	}
	before := asked.Load()
	again, err := Improve(t.Context(), o)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(rounds) || asked.Load() != before {
		t.Errorf("again: %+v, first %+v, %d asked: %v", again, rounds, asked.Load()-before, err)
	}
}

// Hints are tried where the answer alone was rejected, and are not kept.
// A prompt with which a held-out document begins is held out, whether documents name the end of prompts or not.
func TestHeldOutPrompts(t *testing.T) {
	for end, want := range map[string]string{"": "true true false false", "=": "true false false false"} {
		l := &loop{heldOut: [][]byte{[]byte("10+1=11;"), []byte("2+2=4;")}}
		l.PromptEnd = end
		held := l.heldPrompts()
		if got := fmt.Sprintln(held("10+1="), held("2+"), held("3+1="), held("")); strings.TrimSpace(got) != want {
			t.Errorf("end of prompts %q: %s, want %s", end, got, want)
		}
	}
}

func TestHintsAreTriedAndNotKept(t *testing.T) {
	o := improvement(t)
	o.Rounds, o.Questions = 1, o.Questions[:40]
	for i := range o.Questions {
		o.Questions[i].Hint = "?"
	}
	var asked atomic.Int64
	o.Verify = func(_ context.Context, prompt, _ string) (Verdict, error) {
		if strings.HasPrefix(prompt, "?") {
			t.Errorf("the verifier sees the hint: %q", prompt)
		}
		if asked.Add(1) <= 10 {
			return Rejected, nil
		}
		return Accepted, nil
	}
	rounds, err := Improve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := rounds[1]
	if r.Hinted != r.Sampled-r.Accepted || r.Helped == 0 || r.Kept != r.Accepted+r.Helped {
		t.Errorf("%+v", r)
	}
	kept, err := os.ReadFile(filepath.Join(o.Dir, "round-1", "kept.jsonl"))
	if err != nil || strings.Contains(string(kept), "?") || strings.Count(string(kept), `"hinted":true`) != r.Helped {
		t.Errorf("%v\n%s", err, kept)
	}
}

func TestALoopThatLearnsNothingSaysSo(t *testing.T) {
	o := improvement(t)
	o.Questions = o.Questions[:20]
	o.Verify = func(context.Context, string, string) (Verdict, error) { return TimedOut, nil }
	rounds, err := Improve(t.Context(), o)
	var nothing *NothingAcceptedError
	if !errors.As(err, &nothing) || len(rounds) != 1 || nothing.TimedOut == 0 ||
		nothing.TimedOut+nothing.Unfinished != nothing.Sampled {
		t.Errorf("%+v: %v", rounds, err)
	}
	o.PromptEnd = ""
	if _, err := Improve(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--prompt-end") {
		t.Errorf("without the end of prompts: %v", err)
	}
}
