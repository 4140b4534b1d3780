package train

import (
	"errors"
	"os"
	"strings"
	"testing"

	"anneal/config"
	"anneal/internal/filetest"
	"anneal/train/traintest"
)

const (
	offloads = "memory.offload=optimizer"
	wide     = "model.ffn=17000" // of a layer of three pieces
)

// offloadTrainer is a trainer whose state is in a file of a directory of the test.
func offloadTrainer(t *testing.T, name string, more ...string) (*Trainer, traintest.Tokens) {
	t.Helper()
	return optimizerTrainer(t, name, append(more, offloads, "memory.offload_dir="+t.TempDir())...)
}

// With the state in a file a run has the bits of one without: weights, state and losses. A wide layer is cut into
// three pieces, so that both windows are emptied and filled again in the middle of an update.
func TestStateInAFileChangesNoBit(t *testing.T) {
	for _, x := range [][]string{
		{"adamw", wide, "model.layers=1", "optimizer.moments=bf16"},
		{"adamw", wide, "model.layers=1", "precision=bf16_sr"},
		{"adam8bit", wide, "model.layers=1"},
		{"adam"}, {"lion"}, {"ademamix"}, {"adafactor"}, {"soap", "optimizer.basis_every=2"},
		{"muon", "optimizer.normuon=true"}, {"sgd", "optimizer.momentum=0.9"},
		{"adamw", "precision=fp64"}, {"adamw", "precision=fp8", "fp8.scaling=delayed"}, {"adamw", "average.ema=0.9"},
	} {
		inMemory, src := optimizerTrainer(t, x[0], x[1:]...)
		inFile, _ := offloadTrainer(t, x[0], x[1:]...)
		for step := range 2 {
			if a, b := steps(t, inMemory, src, 1), steps(t, inFile, src, 1); a != b {
				t.Errorf("%v: step %d has loss %v, with the state in a file %v", x, step, a, b)
			}
		}
		if hashes(inMemory) != hashes(inFile) {
			t.Errorf("%v: weights or state differ from those of a run without a file", x)
		}
		n, cut := len(inFile.updated), len(inFile.offload.pieces)
		if len(x) > 1 && x[1] == wide && cut < n+2 {
			t.Errorf("%v: %d parameters have %d pieces, so none was cut", x, n, cut)
		}
	}
}

// What is planned is what is taken: two windows in memory, and in the file what would else be in memory.
func TestStateInAFileIsPlanned(t *testing.T) {
	for _, name := range []string{"adamw", "muon", "adam8bit"} {
		inMemory, _ := optimizerTrainer(t, name, wide, "model.layers=1")
		inFile, _ := offloadTrainer(t, name, wide, "model.layers=1")
		whole := int64(arenaOf(inMemory.Arenas(), OptimizerState).Peak())
		if f := inFile.footprint; f.Offloaded != whole || f.Optimizer.State != whole {
			t.Errorf("%s: the file holds %d bytes, state %d; memory %d", name, f.Offloaded, f.Optimizer.State, whole)
		}
		largest := 0
		for i := range inFile.offload.pieces {
			largest = max(largest, inFile.offload.pieces[i].state.Bytes())
		}
		windows := arenaOf(inFile.Arenas(), OptimizerState)
		n, planned := int64(windows.Peak()), inFile.footprint.Bytes(OptimizerState)
		if n != planned || n > int64(2*largest+512) || n >= whole {
			t.Errorf("%s: planned %d bytes of windows, they take %d; the largest piece has %d, all state %d",
				name, planned, n, largest, whole)
		}
		saved := inMemory.footprint.Total() - inFile.footprint.Total()
		if buffer := inFile.footprint.Bytes(CheckpointBuffer); saved != whole-n-buffer {
			t.Errorf("%s: the run needs %d bytes less; the file holds %d, the windows %d, a checkpoint's buffer %d",
				name, saved, whole, n, buffer)
		}
	}
}

// A run may go from memory to a file and back: what checkpoints hold is the same, and so is what follows.
func TestStateGoesFromMemoryToAFileAndBack(t *testing.T) {
	whole, src := optimizerTrainer(t, "adamw")
	steps(t, whole, src, 9)
	from, _ := optimizerTrainer(t, "adamw")
	for i := range 3 {
		steps(t, from, src, 3)
		to, _ := offloadTrainer(t, "adamw")
		if i == 1 {
			to, _ = optimizerTrainer(t, "adamw")
		}
		saved := from.Tensors()
		for k, x := range to.Tensors() {
			x.Memory.Write(x.Value, bytesOf(&saved[k]))
		}
		if err := to.Restore(from.State()); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	if hashes(from) != hashes(whole) {
		t.Error("after two moves the run has other bits")
	}
}

func TestStateInAFileAllocatesNothing(t *testing.T) {
	tr, src := offloadTrainer(t, "adamw", wide, "model.layers=1")
	steps(t, tr, src, 1)
	if n := filetest.AllocsPerRun(5, func() { tr.update(1e-9, 1) }); n != 0 {
		t.Errorf("%v allocations per update, want 0", n)
	}
}

// The file has no name that a kill could leave behind, and a directory that cannot hold it is named.
func TestTheFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	tr, src := optimizerTrainer(t, "adamw", offloads, "memory.offload_dir="+dir)
	steps(t, tr, src, 2)
	tr.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the directory holds %v, %v", left, err)
	}
	cfg, err := config.Load("", []string{
		"data.path=rule", "model.vocab=64", offloads, "memory.offload_dir=" + dir + "/no",
	})
	if err != nil {
		t.Fatal(err)
	}
	var p config.Problem
	_, err = New(cfg, tr.dev)
	if !errors.As(err, &p) || p.Key != "memory.offload_dir" || !strings.Contains(p.Try, "MiB") {
		t.Errorf("without a directory: %v", err)
	}
}

// A disk that fails ends the update with an error that wraps its own, so that nothing of it is saved.
func TestAFailingDiskEndsTheStep(t *testing.T) {
	tr, src := offloadTrainer(t, "adamw")
	steps(t, tr, src, 1)
	x := tr.Tensors()
	tr.offload.file.Close() // behind its back
	var failed *DeviceError
	if err := tr.update(1e-9, 1); !errors.As(err, &failed) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("the update on a closed file returns %v", err)
	}
	if err := Wait(x[len(x)-1].Memory); err == nil {
		t.Error("a checkpoint would not learn of the failure")
	}
}

// A disk that fails ends the run with the key to change.
func TestADiskThatFailsNamesItsKey(t *testing.T) {
	inFile, src := offloadTrainer(t, "adamw")
	inFile.offload.file.Close()
	if _, err := inFile.Step(t.Context(), src); err == nil || !strings.Contains(err.Error(), "memory.offload_dir") {
		t.Errorf("the error is %v", err)
	}
}
