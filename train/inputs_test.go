package train

import (
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/device/disk"
	"anneal/internal/filetest"
	"anneal/tensor"
	"anneal/train/traintest"
)

// deepTrainer is a trainer of six layers, some of which are recomputed.
func deepTrainer(t *testing.T, more ...string) (*Trainer, traintest.Tokens) {
	t.Helper()
	return optimizerTrainer(t, "adamw", append([]string{"model.layers=6", "train.micro_batch=4"}, more...)...)
}

// inputsTrainer is deepTrainer with the inputs of segments in a file of a directory of the test.
func inputsTrainer(t *testing.T, more ...string) (*Trainer, traintest.Tokens) {
	t.Helper()
	return deepTrainer(t, append(more, "memory.offload=checkpoints", "memory.offload_dir="+t.TempDir())...)
}

// With the inputs of segments in a file a run has the bits of one without, over two micro-batches a step, for each
// strategy that has segments, and whatever else makes passes of its own.
func TestInputsInAFileChangeNoBit(t *testing.T) {
	for _, x := range []struct {
		segments int
		set      []string
	}{
		{5, []string{"memory.recompute=every_layer"}},
		{5, []string{"memory.recompute=every_layer", "memory.recompute_inputs=bf16", "precision=fp8"}},
		{2, []string{"memory.recompute=every:2", "model.dropout=0.1", "model.stochastic_depth=0.3"}},
		{2, []string{"memory.recompute=sqrt", "train.length_warmup=8 over 600 tokens"}},
		{1, []string{"memory.recompute=every:5"}},
		{4, []string{"memory.recompute=budget:500KiB"}},
		{5, []string{"memory.recompute=every_layer", "guard.replay_every=1", "model.family=anneal"}},
		{5, []string{"memory.recompute=every_layer", "optimizer.name=sophia", "optimizer.hessian_every=1"}},
	} {
		inMemory, src := deepTrainer(t, x.set...)
		inFile, _ := inputsTrainer(t, x.set...)
		for step := range 2 {
			if a, b := steps(t, inMemory, src, 1), steps(t, inFile, src, 1); a != b {
				t.Errorf("%v: step %d has loss %v, with inputs in a file %v", x.set, step, a, b)
			}
		}
		if hashes(inMemory) != hashes(inFile) {
			t.Errorf("%v: weights or state differ from those of a run without a file", x.set)
		}
		if got := inFile.moves.inputs.most; got != x.segments {
			t.Errorf("%v: %d inputs were kept, want %d", x.set, got, x.segments)
		}
	}
}

// What is planned is what is taken: two windows in memory, in the file the inputs that were among the activations.
func TestInputsInAFileArePlanned(t *testing.T) {
	for _, inputs := range []struct {
		format string
		bytes  int64 // per number
	}{{"full", 4}, {"bf16", 2}} {
		set := []string{"memory.recompute=every_layer", "memory.recompute_inputs=" + inputs.format}
		inMemory, src := deepTrainer(t, set...)
		inFile, _ := inputsTrainer(t, set...)
		steps(t, inMemory, src, 1)
		steps(t, inFile, src, 1)
		one := 4 * 32 * 64 * inputs.bytes // 4 rows of 32 tokens
		f := inFile.footprint
		if f.OffloadedInputs != 5*one || f.Bytes(SegmentInputs) != 2*one {
			t.Errorf("%s: planned %d bytes in the file, %d in windows; an input has %d",
				inputs.format, f.OffloadedInputs, f.Bytes(SegmentInputs), one)
		}
		if less := inMemory.footprint.Bytes(Activations) - f.Bytes(Activations); less != 5*one {
			t.Errorf("%s: %d bytes less of activations, want five inputs of %d", inputs.format, less, one)
		}
		for _, a := range inFile.Arenas() {
			if got := int64(a.Peak()); got != f.Bytes(a.Name()) {
				t.Errorf("%s: %s takes %d bytes, planned %d", inputs.format, a.Name(), got, f.Bytes(a.Name()))
			}
		}
	}
}

// Without a segment there is nothing to keep: one layer alone is not rerun.
func TestNoInputsNeedNoWindows(t *testing.T) {
	tr, src := inputsTrainer(t, "model.layers=1", "memory.recompute=every_layer")
	steps(t, tr, src, 1)
	if n := tr.footprint.Bytes(SegmentInputs); n != 0 || tr.moves.inputs != nil {
		t.Errorf("a model without segments has windows of %d bytes", n)
	}
}

// Inputs are a stack: what comes back is what was kept, in any order of keeping, taking and beginning anew, although
// the caller overwrites what it has taken.
func TestInputsComeBackInReverse(t *testing.T) {
	const size, most = 64, 6
	file, err := disk.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	home, err := file.NewArena(offloadedInputs, most*size)
	if err != nil {
		t.Fatal(err)
	}
	windows, err := tensor.NewArena(SegmentInputs, 2*size)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.Close()
	arenas := []*tensor.Arena{home, windows}
	x := layInputs(&Footprint{OffloadedInputs: most * size, largestInput: size},
		func(name string) *tensor.Arena { return arenaOf(arenas, name) })
	x.start(file, x.move)
	defer x.close()
	rapid.Check(t, func(t *rapid.T) {
		x.Reset()
		var kept []byte
		var memory [most]tensor.Tensor
		for i, act := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 60).Draw(t, "acts") {
			n := len(kept)
			switch {
			case act == 0:
				x.Reset()
				kept = nil
			case act > 10 && n < most:
				memory[n] = x.New(tensor.U8, []int{size})
				memory[n].Raw()[size-1] = byte(i)
				x.Keep()
				kept = append(kept, byte(i))
			case act <= 10 && n > 0:
				x.Last()
				b := memory[n-1].Raw()
				if b[size-1] != kept[n-1] {
					t.Fatalf("input %d comes back with %d, want %d", n-1, b[size-1], kept[n-1])
				}
				clear(b)
				kept = kept[:n-1]
			}
		}
		if err := x.failed(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestInputsInAFileAllocateNothing(t *testing.T) {
	tr, src := inputsTrainer(t, "memory.recompute=every_layer")
	steps(t, tr, src, 1)
	n := filetest.AllocsPerRun(5, func() {
		if err := tr.propagate(true, true, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per pass, want 0", n)
	}
}

// A disk that fails ends the step with the key to change, before it has changed a weight, and is not taken for
// silent corruption.
func TestAFailingDiskEndsThePass(t *testing.T) {
	for _, set := range []string{"guard.replay_every=0", "guard.replay_every=1"} {
		tr, src := inputsTrainer(t, "memory.recompute=every_layer", set)
		steps(t, tr, src, 1)
		before, at := hashes(tr), tr.progress
		tr.moves.file.Close() // behind its back
		var failed *DeviceError
		_, err := tr.Step(t.Context(), src)
		if !errors.As(err, &failed) || !errors.Is(err, os.ErrClosed) ||
			!strings.Contains(err.Error(), "memory.offload_dir") {
			t.Errorf("%s: the step on a closed file returns %v", set, err)
		}
		if hashes(tr) != before || tr.progress != at {
			t.Errorf("%s: the step has changed the run", set)
		}
	}
}

// State and inputs share one file, whose room is that of both.
func TestStateAndInputsShareAFile(t *testing.T) {
	set := []string{"memory.recompute=every_layer", "memory.recompute_inputs=bf16"}
	inMemory, src := deepTrainer(t, set...)
	dir := t.TempDir()
	both := append(set, "memory.offload=optimizer,checkpoints", "memory.offload_dir="+dir)
	inFile, _ := deepTrainer(t, both...)
	if a, b := steps(t, inMemory, src, 3), steps(t, inFile, src, 3); a != b || hashes(inMemory) != hashes(inFile) {
		t.Errorf("loss %v, with state and inputs in a file %v", a, b)
	}
	if f := inFile.footprint; f.Offloaded == 0 || f.OffloadedInputs == 0 ||
		inFile.offload.file != inFile.moves.inputs.file {
		t.Errorf("the file holds %d bytes of state and %d of inputs", f.Offloaded, f.OffloadedInputs)
	}
	inFile.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the directory holds %v, %v", left, err)
	}
}
