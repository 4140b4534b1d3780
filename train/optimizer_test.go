package train

import (
	"context"
	"math"
	"testing"

	"anneal/config"
	"anneal/internal/filetest"
	"anneal/train/traintest"
)

// optimizers are the names of all.
func optimizers(t *testing.T) []string {
	t.Helper()
	key, err := config.Explain("optimizer.name")
	if err != nil || len(key.Values) == 0 {
		t.Fatalf("optimizer.name has the values %v, %v", key.Values, err)
	}
	return key.Values
}

// optimizerTrainer is a small model with an optimizer at its own defaults, and data with a rule to learn. Its matrices
// are large enough for every special treatment.
func optimizerTrainer(t *testing.T, name string, more ...string) (*Trainer, traintest.Tokens) {
	t.Helper()
	cfg, err := config.Load("", append([]string{
		"data.path=rule", "optimizer.name=" + name, "model.layers=2", "model.dim=64", "model.heads=2",
		"model.context=32", "model.vocab=64", "train.batch_tokens=256", "schedule.name=constant", "schedule.warmup=5",
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	tr := trainerOf(t, cfg, 2)
	return tr, traintest.Tokens{VocabSize: 64, Length: 32, BatchSize: 8}
}

// steps makes n steps and returns the loss of the last.
func steps(t *testing.T, tr *Trainer, src traintest.Tokens, n int) float64 {
	t.Helper()
	loss := math.NaN()
	for range n {
		s, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		loss = s.Loss
	}
	return loss
}

// A trainer restored from a checkpoint continues with the bits of the one that wrote it, after any step.
func TestEveryOptimizerResumesBitForBit(t *testing.T) {
	const total = 12
	for _, name := range optimizers(t) {
		uninterrupted, src := optimizerTrainer(t, name)
		steps(t, uninterrupted, src, total)
		whole, _ := optimizerTrainer(t, name)
		for step := 1; step < total; step++ {
			steps(t, whole, src, 1)
			if step != 1 && step != 9 && step != 10 { // around a period of ten, as some estimates have
				continue
			}
			resumed, _ := optimizerTrainer(t, name)
			saved := whole.Tensors()
			for i, x := range resumed.Tensors() {
				copy(x.Value.Raw(), saved[i].Value.Raw())
			}
			resumed.Restore(whole.State())
			steps(t, resumed, src, total-step)
			if got, want := hashes(resumed), hashes(uninterrupted); got != want {
				t.Errorf("%s: resumed after step %d: weights and state %.12q; uninterrupted %.12q",
					name, step, got, want)
			}
		}
	}
}

// What a plan says of an optimizer's state is what its arena holds, a step allocates nothing, and a run learns with
// the optimizer's own learning rate: a token follows from the one before in seven cases of eight.
func TestEveryOptimizerIsPlannedAndLearns(t *testing.T) {
	for _, name := range optimizers(t) {
		tr, src := optimizerTrainer(t, name)
		planned := tr.footprint.Optimizer.State
		if a := arenaOf(tr.Arenas(), OptimizerState); int64(a.Peak()) != planned || a.Size()-a.Peak() > 64 {
			t.Errorf("%s: planned %d bytes of state, the arena of %d holds %d", name, planned, a.Size(), a.Peak())
		}
		loss := steps(t, tr, src, 150)
		if loss > 2.5 { // ln 64 = 4.2 at the start; a model that knows the rule has 0.9
			t.Errorf("%s: after 150 steps the loss is %.3f", name, loss)
		}
		if n := filetest.AllocsPerRun(5, func() { tr.update(1e-9, 1) }); n != 0 {
			t.Errorf("%s: %v allocations per update, want 0", name, n)
		}
		t.Logf("%s: %.2f bytes of state a parameter, loss %.3f",
			name, float64(planned)/float64(tr.Model().Count()), loss)
	}
}
