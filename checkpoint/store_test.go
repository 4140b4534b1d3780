package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/internal/machine"
)

func TestSavedStateComesBack(t *testing.T) {
	origin := Origin{Run: "00112233445566ff", Config: strings.Repeat("c0ffee00", 8), CodeVersion: "v1"}
	for _, synchronous := range []bool{false, true} {
		root := filepath.Join(t.TempDir(), "run", "checkpoints")
		s := mustOpen(t, root, Options{Synchronous: synchronous, Origin: origin, Log: quiet})
		const big = 9<<20 + 40 // three chunks and a bit
		mustSave(t, s, big, 7)
		info := wantLatest(t, root, 7, big)
		if info.Origin != origin || info.Name != "step-00000007" || info.Bytes < 2*big {
			t.Errorf("info = %+v", info)
		}
		got := names(t, filepath.Join(root, info.Name))
		if want := []string{"MANIFEST.json", modelFile, optimFile, "state.json"}; !slices.Equal(got, want) {
			t.Errorf("files = %v, want %v", got, want)
		}
		if latest, _ := os.ReadFile(filepath.Join(root, "latest")); string(latest) != "step-00000007\n" {
			t.Errorf("latest = %q", latest)
		}
		if _, err := Verify(root); err != nil {
			t.Error(err)
		}
	}
}

// A checkpoint holds what memory held at the moment of Save, whatever changes it once Copied has returned, or a tensor
// that is volatile at once.
func TestSnapshotIsOfTheMomentOfSave(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	const big = 8 << 20
	tensors, state := stateAt(1, big)
	s.Reserve(2*big + 1<<20)
	s.Copied() // nothing to wait for
	tensors[2].Volatile = true
	for step := int64(1); step <= 3; step++ {
		fillAt(tensors[2].Data, step, 2)
		s.Copied()
		for i := range tensors {
			fillAt(tensors[i].Data, step, i)
		}
		_, state = stateAt(step, small)
		if err := s.Save(step, step*10, tensors, state); err != nil {
			t.Fatal(err)
		}
	}
	clear(tensors[2].Data)
	s.Copied()
	for i := range tensors {
		clear(tensors[i].Data) // while the third is being written
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	wantLatest(t, root, 3, big)
	if _, err := LoadStep(root, 2, tensors, &state); err != nil {
		t.Fatal(err)
	}
	if d := differs(tensors, state, 2, big); d != "" {
		t.Error(d)
	}
}

func TestWeightsLoadWithoutOptimizerState(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 4)
	weights := slices.DeleteFunc(blank(small), func(t Tensor) bool { return t.Optim })
	if _, err := LoadLatest(root, weights, nil); err != nil {
		t.Fatal(err)
	}
	want, _ := stateAt(4, small)
	for i := range weights {
		if !bytes.Equal(weights[i].Data, want[i].Data) {
			t.Errorf("tensor %q is not that of step 4", weights[i].Name)
		}
	}
}

func TestLoadingAnotherModelIsAnErrorThatNamesTheTensor(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 1, 2)
	for name, change := range map[string]func([]Tensor) []Tensor{
		`"layer.norm" is F32 [16] in the checkpoint, but F32 [4, 4] in this run`: func(l []Tensor) []Tensor {
			l[1].Shape = []int{4, 4}
			return l
		},
		`"layer.norm" is F32 [16] in the checkpoint, but BF16 [32] in this run`: func(l []Tensor) []Tensor {
			l[1].DType, l[1].Shape = "BF16", []int{32}
			return l
		},
		`tensor "layer.n" is missing from the checkpoint`: func(l []Tensor) []Tensor {
			l[1].Name = "layer.n"
			return l
		},
		`tensor "layer.norm" does not exist in this run`: func(l []Tensor) []Tensor {
			return slices.Delete(l, 1, 2)
		},
		`tensor "count" does not exist in this run`: func(l []Tensor) []Tensor { return l[:5] },
		`tensor "embed.m" is missing from the checkpoint`: func(l []Tensor) []Tensor {
			l[4].Optim = false
			return l
		},
		`tensor "embed" has 8 bytes, but F32 [1024] needs 4096`: func(l []Tensor) []Tensor {
			l[0].Data = l[0].Data[:8]
			return l
		},
		`tensor "embed" is given twice`:       func(l []Tensor) []Tensor { l[1] = l[0]; return l },
		`a tensor has no name`:                func(l []Tensor) []Tensor { l[1].Name = ""; return l },
		`tensor "embed": unknown dtype "F31"`: func(l []Tensor) []Tensor { l[0].DType = "F31"; return l },
		`no tensors`:                          func([]Tensor) []Tensor { return nil },
		`tensor "a" is missing from the checkpoint; tensor "b" is missing from the checkpoint; tensor "embed"`: func(l []Tensor) []Tensor {
			l[1].Name, l[0].Name = "a", "b"
			return l
		},
	} {
		_, err := LoadLatest(root, change(blank(small)), nil)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error = %v, want one that says: %s", err, name)
		}
	}
	var wrong struct{ Step string }
	if _, err := LoadLatest(root, blank(small), &wrong); err == nil || !strings.Contains(err.Error(), stateName) {
		t.Errorf("error = %v, want one about %s", err, stateName)
	}
}

func TestSaveRefusesNonsense(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	tensors, _ := stateAt(1, small)
	for name, err := range map[string]error{
		"negative step":     s.Save(-1, 0, tensors, nil),
		"negative tokens":   s.Save(1, -1, tensors, nil),
		`no tensors`:        s.Save(1, 1, nil, nil),
		"a state of funcs":  s.Save(1, 1, tensors, func() {}),
		"a name in Latin-1": s.Save(1, 1, []Tensor{{Name: "\xe9", DType: "U8", Shape: []int{1}, Data: []byte{1}}}, nil),
		"twice the name":    s.Save(1, 1, append(tensors, tensors[0]), nil),
	} {
		if err == nil {
			t.Errorf("%s was saved", name)
		}
	}
	if got := names(t, root); len(got) != 0 {
		t.Errorf("the directory holds %v", got)
	}
	if _, err := Open(t.TempDir(), Options{Keep: 1}); err == nil {
		t.Error("keep = 1 was accepted")
	}
}

func TestNoCheckpointIsItsOwnError(t *testing.T) {
	for _, root := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, err := LoadLatest(root, blank(small), nil); !errors.Is(err, ErrNone) {
			t.Errorf("LoadLatest: %v, want ErrNone", err)
		}
		if _, err := LoadStep(root, 1, blank(small), nil); !errors.Is(err, ErrNone) {
			t.Errorf("LoadStep: %v, want ErrNone", err)
		}
		if _, err := Verify(root); !errors.Is(err, ErrNone) {
			t.Errorf("Verify: %v, want ErrNone", err)
		}
		if _, _, _, err := Hash(root); !errors.Is(err, ErrNone) {
			t.Errorf("Hash: %v, want ErrNone", err)
		}
	}
	root := t.TempDir() // of another step
	s := mustOpen(t, root, Options{Log: quiet})
	for step, want := range []string{"", "its checkpoint is of step 1", "its checkpoints are of steps 2, 1"} {
		if step > 0 {
			tensors, state := stateAt(int64(step), small)
			if err := errors.Join(s.Save(int64(step), 0, tensors, state), s.Wait()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := LoadStep(root, 7, blank(small), nil); !errors.Is(err, ErrNone) ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("with %d checkpoints: %v; want %q", step, err, want)
		}
	}
}

func TestKeepsTheNewest(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1, 2, 3, 4)
	if got, want := names(t, root), []string{"latest", step(3), step(4)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

// A checkpoint whose manifest no reader would take is not saved, so the readable ones stay.
func TestAManifestThatCannotBeReadIsNotWritten(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1)
	text, err := os.ReadFile(at(root, 1, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	defer func(most jsonlimit.Limits) { manifestMost = most }(manifestMost)
	manifestMost.Objects = strings.Count(string(text), "{")
	for _, writers := range []int{1, 3} {
		tensors, state := stateAt(2, small)
		for i := range 50 { // more than the limit, also in one writer's part
			one := Tensor{Name: fmt.Sprint("more.", i), DType: "U8", Shape: []int{1}, Data: []byte{1}}
			tensors = append(tensors, one)
		}
		if err := save(s, writers, 2, tensors, state); err == nil || !strings.Contains(err.Error(), "fewer ranks") {
			t.Errorf("saved by %d: %v", writers, err)
		}
		wantLatest(t, root, 1, small)
	}
}

// After a rewind the new checkpoints are the newest, though their steps are smaller, and the abandoned ones go.
func TestRewindMakesALaterCheckpointOfAnEarlierStep(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 3, Log: quiet})
	mustSave(t, s, small, 10, 20, 30)
	info, err := LoadStep(root, 10, blank(small), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.goOn(info); err != nil {
		t.Fatal(err)
	}
	if latest, _ := os.ReadFile(filepath.Join(root, "latest")); string(latest) != step(10)+"\n" {
		t.Errorf("latest = %q after the rewind", latest)
	}
	mustSave(t, s, small, 15)
	wantLatest(t, root, 15, small)
	mustSave(t, s, small, 20) // there is an older one of this step
	wantLatest(t, root, 20, small)
	if got, want := names(t, root), []string{"latest", step(15), step(20) + "-2", step(30)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
	entries, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := entries[1].manifest.Parent; got != step(10) {
		t.Errorf("parent of step 15 is %q, want %q", got, step(10))
	}
	mustSave(t, s, small, 25)
	if got, want := names(t, root), []string{"latest", step(15), step(20) + "-2", step(25)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

// Two damaged newer ones: retention must neither count them nor delete the good one that was loaded in their stead.
func TestRetentionDoesNotCountDamagedCheckpoints(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1, 2)
	s.opt.Keep = 4
	mustSave(t, s, small, 3, 4)
	s.opt.Keep = 2
	for _, n := range []int{3, 4} {
		edit(t, at(root, n, modelFile), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	}
	tensors, state := blank(small), runState{}
	info, err := s.LoadLatest(tensors, &state)
	if err != nil || info.Step != 2 || len(info.Skipped) != 2 {
		t.Fatalf("info = %+v, %v; want step 2 and two skipped", info, err)
	}
	mustSave(t, s, small, 5)
	if got := names(t, root); !slices.Contains(got, step(2)) || !slices.Contains(got, step(5)) {
		t.Errorf("the directory holds %v, want at least %v", got, []string{step(2), step(5)})
	}
	mustSave(t, s, small, 6)
	if got, want := names(t, root), []string{"latest", step(5), step(6)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

func TestLatestPointerIsAdvisoryAndMended(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	mustSave(t, s, small, 1, 2)
	latest := filepath.Join(root, "latest")
	for _, content := range []string{"step-00000099\n", "", "../../etc/passwd", "\x00\xff", "absent"} {
		if err := os.WriteFile(latest, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if content == "absent" {
			os.Remove(latest)
		}
		wantLatest(t, root, 2, small)
		if _, err := s.LoadLatest(blank(small), nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(latest); string(got) != step(2)+"\n" {
			t.Errorf("latest = %q after %q, want it mended", got, content)
		}
	}
}

// A process that only looks whether the lock is held, for a moment, keeps no run from starting, and another process
// that looks does not take it for the holder.
func TestALookAtTheLockRefusesNobody(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	look := func() *os.File {
		f, err := os.Open(filepath.Join(root, ".lock"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := look()
	if runtime.GOOS != "windows" && !fileio.Locked(f) {
		t.Error("the lock of a store is not seen")
	}
	f.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f = look()
	other := look()
	if fileio.Locked(f) || fileio.Locked(other) {
		t.Error("one look is taken for a lock by another")
	}
	other.Close()
	time.AfterFunc(lockPatience/4, func() { f.Close() })
	s, err := Open(root, Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestSecondProcessIsRefused(t *testing.T) {
	root := t.TempDir()
	s, err := Open(root, Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(root, Options{Log: quiet})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Host == "" {
		t.Errorf("error = %v, want a LockedError with our pid", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	var log journal
	s, err = Open(root, Options{Log: log.logger()})
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	s.Close()
	if log.String() != "" {
		t.Errorf("a lock that was given back was reported as taken over: %s", log.String())
	}
	if err := s.Save(1, 1, blank(small), nil); err == nil {
		t.Error("Save after Close succeeded")
	}
}

func TestUnusableDirectoryIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, filepath.Join(file, "x"), "/proc/anneal"} {
		if _, err := Open(root, Options{Log: quiet}); err == nil || !strings.Contains(err.Error(), root) {
			t.Errorf("Open(%s): %v, want an error with the path", root, err)
		}
	}
}

func TestTooLittleSpaceIsFoundBeforeWriting(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	mustSave(t, s, small, 1)
	s.free = func(string) (int64, error) { return 1 << 20, nil }
	err := s.Save(2, 20, blank(small), nil)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "has 1.0 MB free") ||
		!strings.Contains(err.Error(), root) {
		t.Errorf("error = %v, want ENOSPC with the space, and the path", err)
	}
	if early := s.CheckBytes(1); !errors.Is(early, syscall.ENOSPC) ||
		!strings.Contains(early.Error(), root) {
		t.Errorf("CheckBytes = %v, want what the save says", early)
	}
	s.free = machine.FreeDisk
	if err := s.CheckBytes(1); err != nil {
		t.Errorf("CheckBytes with room: %v", err)
	}
	mustSave(t, s, small, 3)
	if free, err := machine.FreeDisk(root); err != nil || free == 0 {
		t.Errorf("FreeDisk = %d, %v", free, err)
	}
}

// The snapshot is outside the Go heap, and every save uses the same memory.
func TestSavesReuseTheirMemory(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Log: quiet})
	const big = 16 << 20
	tensors, state := stateAt(1, big)
	var first *byte
	for step := int64(1); step < 5; step++ {
		took := allocated(t, func() error { return errors.Join(s.Save(step, 1, tensors, state), s.Wait()) })
		if took > 1<<20 {
			t.Errorf("save %d allocated %d bytes, want less than 1 MiB", step, took)
		}
		if n := s.snapshot.size(); n < 2*big || n > 2*big+1<<20 {
			t.Errorf("the snapshot of save %d has %d bytes, the state %d", step, n, 2*big)
		}
		held, err := s.snapshot.take(1)
		if err != nil {
			t.Fatal(err)
		}
		if step == 1 {
			first = &held[0]
		}
		if &held[0] != first {
			t.Errorf("save %d has memory of its own", step)
		}
	}
}

// allocated returns how many bytes of the Go heap a function takes.
func allocated(t *testing.T, do func() error) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := do(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Hashing a checkpoint takes as much memory whatever its size.
func TestHashingTakesLittleMemory(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Log: quiet})
	tensors, state := stateAt(1, 32<<20)
	want, _, err := HashTensors(tensors)
	if err := errors.Join(err, s.Save(1, 10, tensors, state), s.Wait()); err != nil {
		t.Fatal(err)
	}
	took := allocated(t, func() error {
		got, _, _, err := Hash(s.root)
		if got != want {
			t.Errorf("the hash is %s, want %s", got, want)
		}
		return err
	})
	if most := uint64(2*chunkBytes + 2<<20); took > most {
		t.Errorf("hashing took %d bytes, want at most %d", took, most)
	}
}

// A reader without the lock (generate, eval) always finds a whole checkpoint while a run saves and deletes.
func TestReadersBesideAWriter(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		last := int64(0)
		for n := 0; ctx.Err() == nil; n++ {
			tensors, state := blank(small), runState{}
			info, err := LoadLatest(root, tensors, &state)
			if err != nil {
				t.Error(err)
				return
			}
			if d := differs(tensors, state, info.Step, small); d != "" || info.Step < last {
				t.Errorf("step %d after step %d: %s", info.Step, last, d)
			}
			last = info.Step
		}
	})
	for step := int64(2); step <= 40; step++ {
		mustSave(t, s, small, step)
	}
	stop()
	wg.Wait()
}

func TestHashIsOfContentAlone(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	const big = 5 << 20
	mustSave(t, s, big, 3)
	tensors, _ := stateAt(3, big)
	weights, optimizer, _ := HashTensors(tensors)
	gotW, gotO, info, err := Hash(root)
	if err != nil || gotW != weights || gotO != optimizer || info.Step != 3 {
		t.Errorf("Hash = %s, %s, %d, %v; live tensors have %s, %s", gotW, gotO, info.Step, err, weights, optimizer)
	}
	rand.Shuffle(len(tensors), func(i, j int) { tensors[i], tensors[j] = tensors[j], tensors[i] })
	if w, o, _ := HashTensors(tensors); w != weights || o != optimizer {
		t.Error("the hash depends on the order of tensors")
	}
	for name, change := range map[string]func(*Tensor){
		"a bit":  func(t *Tensor) { t.Data = bytes.Clone(t.Data); t.Data[0] ^= 1 },
		"name":   func(t *Tensor) { t.Name = "layer.norn" },
		"dtype":  func(t *Tensor) { t.DType = "I32" },
		"shape":  func(t *Tensor) { t.Shape = []int{4, 4} },
		"absent": func(t *Tensor) { t.Optim = true },
	} {
		other, _ := stateAt(3, big)
		change(&other[1])
		if w, _, _ := HashTensors(other); w == weights {
			t.Errorf("the hash does not depend on %s", name)
		}
	}
	if w, o, _ := HashTensors(nil); w != "" || o != "" {
		t.Errorf("hashes of nothing: %q, %q", w, o)
	}
}

// A state that cannot be filled is the caller's mistake, not damage and no panic.
func TestAStateIsReadIntoAPointer(t *testing.T) {
	root := t.TempDir()
	s, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tensors := []Tensor{{Name: "w", DType: "U8", Shape: []int{1}, Data: []byte{1}}}
	if err := errors.Join(s.Save(1, 1, tensors, map[string]int{"a": 1}), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, state := range []any{map[string]int{}, 3, (*int)(nil)} {
		info, err := LoadState(root, state)
		if err == nil || !strings.Contains(err.Error(), "into a pointer") || len(info.Skipped) > 0 {
			t.Errorf("%T: %v, skipped %v", state, err, info.Skipped)
		}
	}
}
