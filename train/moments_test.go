package train

import (
	"testing"

	"anneal/internal/filetest"
)

// Moments in BF16 take half of the memory, allocate nothing, resume bit for bit and hardly change a loss.
func TestNarrowMomentsResumeAndLearn(t *testing.T) {
	for _, name := range []string{"adamw", "adam"} {
		wide, src := optimizerTrainer(t, name)
		want := steps(t, wide, src, 40)
		narrow, _ := optimizerTrainer(t, name, "optimizer.moments=bf16")
		steps(t, narrow, src, 20)
		resumed, _ := optimizerTrainer(t, name, "optimizer.moments=bf16")
		saved := narrow.Tensors()
		for i, x := range resumed.Tensors() {
			copy(x.Value.Raw(), saved[i].Value.Raw())
		}
		if err := resumed.Restore(narrow.State()); err != nil {
			t.Fatal(err)
		}
		got := steps(t, narrow, src, 20)
		if steps(t, resumed, src, 20); hashes(resumed) != hashes(narrow) {
			t.Errorf("%s: resumed in the middle, a run ends with other bits", name)
		}
		if got > 1.03*want || got < 0.97*want {
			t.Errorf("%s: after 40 steps the loss is %.4f, with wide moments %.4f", name, got, want)
		}
		whole, half := wide.footprint.Optimizer.State, narrow.footprint.Optimizer.State
		if a := arenaOf(narrow.Arenas(), OptimizerState); int64(a.Peak()) != half || half > whole/2+4096 {
			t.Errorf("%s: planned %d bytes of state, the arena holds %d; wide ones %d", name, half, a.Peak(), whole)
		}
		if n := filetest.AllocsPerRun(5, func() { narrow.update(1e-9, 1) }); n != 0 {
			t.Errorf("%s: %v allocations per update, want 0", name, n)
		}
	}
}
