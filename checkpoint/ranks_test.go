package checkpoint

import (
	"bytes"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// One process takes the newest checkpoint, the others load it by name. The first one checks all of it, although it
// needs only a part: damage that only another would meet makes all of them take the one before.
func TestOneTakesACheckpointAndTheOthersLoadItByName(t *testing.T) {
	const big = 4 * chunkBytes
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet, Together: true})
	for _, step := range []int64{1, 2} {
		tensors, state := stateAt(step, big)
		if err := save(s, 2, step, tensors, state); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, at(root, 2, "model.r00001.safetensors"), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	// The first one has nothing of layer.w, the second nothing of the optimizer's state.
	parts := [][]Tensor{halvesOf(blank(big), 0), halvesOf(blank(big), 1)}
	parts[0], parts[1] = slices.Delete(parts[0], 2, 3), parts[1][:4]
	var state, follower runState
	info, err := s.LoadLatest(parts[0], &state)
	if err != nil || info.Step != 1 || len(info.Skipped) != 1 {
		t.Fatalf("LoadLatest took step %d and skipped %v: %v", info.Step, info.Skipped, err)
	}
	told, err := Load(root, info.Name, parts[1], &follower)
	if err != nil || told.Step != 1 || follower != state {
		t.Fatalf("Load of %s: step %d, state %+v, %v", info.Name, told.Step, follower, err)
	}
	want, _ := stateAt(1, big)
	for i := range parts {
		for _, x := range halvesOf(want, i) {
			j := slices.IndexFunc(parts[i], func(p Tensor) bool { return p.Name == x.Name })
			if j >= 0 && !bytes.Equal(parts[i][j].Data, x.Data) {
				t.Errorf("process %d: tensor %q is not that of step 1", i, x.Name)
			}
		}
	}
	_, err = Load(root, step(2), parts[1], nil)
	wantFault(t, err, "model.r00001.safetensors", "embed", -2)
	if _, err := LoadLatest(root, parts[1][1:], nil); !errors.Is(err, ErrOtherModel) {
		t.Errorf("a process that should have all tensors loads some: %v", err)
	}
	other := []Tensor{{Name: "layer.v", DType: "F32", Shape: []int{1}, Data: make([]byte, 4)}}
	if _, err := Load(root, step(1), other, nil); !errors.Is(err, ErrOtherModel) {
		t.Errorf("a tensor that no process has written: %v", err)
	}
	if _, err := Load(root, step(3), parts[1], nil); err == nil || !strings.Contains(err.Error(), "must see") {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
	if _, err := Load(root, "../"+step(1), parts[1], nil); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("a name that is none: %v", err)
	}
}

// What one process alone would find by loading, several find together: a tensor of a kind that they load which none of
// them holds.
func TestTensorsThatNobodyHoldsAreFoundTogether(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet, Together: true})
	tensors, state := stateAt(1, 8)
	if err := save(s, 2, 1, tensors, state); err != nil {
		t.Fatal(err)
	}
	info, err := LoadState(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	for missing := range len(tensors) + 1 { // the last time none is
		kept := slices.Delete(slices.Clone(tensors), missing, min(missing+1, len(tensors)))
		held := new(big.Int)
		others := false // of the missing one's kind
		for i := range kept {
			held.Or(held, info.Held(halvesOf(kept, i%2)[i:i+1]))
			others = others || missing < len(tensors) && kept[i].kind() == tensors[missing].kind()
		}
		err := info.CheckHeld(held)
		if others != errors.Is(err, ErrOtherModel) || others != (err != nil) ||
			others && !strings.Contains(err.Error(), strconv.Quote(tensors[missing].Name)) {
			t.Errorf("without tensor %d, with others of its kind: %v: %v", missing, others, err)
		}
	}
}

// halvesOf returns the first or second half of the elements of every tensor; of those with less than two, all or none.
func halvesOf(tensors []Tensor, i int) (list []Tensor) {
	for _, x := range tensors {
		n := volume(x.Shape)
		r := []Region{{To: n / 2}, {From: n / 2, To: n}}[i]
		if n < 2 {
			r = []Region{{}, nothing(x.Shape)}[i]
		}
		list = append(list, partOf(x, r))
	}
	return list
}

// A process that owns nothing writes an empty part.
func TestAProcessMayOwnNothing(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Log: quiet})
	tensors, state := stateAt(1, small)
	if err := saveParts(s, 1, [][]Tensor{nil, tensors, nil}, state); err != nil {
		t.Fatal(err)
	}
	wantLatest(t, s.root, 1, small)
	if err := errors.Join(s.Save(2, 20, nil, state), s.Wait()); err == nil {
		t.Error("a checkpoint without tensors was saved")
	}
}

// What a writer says it wrote is not here, or not as it was written: the save has failed, the one before stays.
func TestCommitReadsThePartsBack(t *testing.T) {
	const big = 3 * chunkBytes
	for name, harm := range map[string]func(path string) error{
		"gone":    os.Remove,
		"shorter": func(path string) error { return os.Truncate(path, 100) },
		"zeros at its end": func(path string) error {
			st, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, st.Size()-8), os.Truncate(path, st.Size()))
		},
	} {
		s := mustOpen(t, t.TempDir(), Options{Log: quiet, Together: true})
		mustSave(t, s, big, 1)
		tensors, state := stateAt(2, big)
		dir, err := s.Begin(2, 20, state)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			w := Writer{Root: s.root, Number: i}
			if err := errors.Join(w.Write(dir, share(tensors, i, 2)), w.Close()); err != nil {
				t.Fatal(err)
			}
		}
		const file = "optim.r00001.safetensors"
		if err := harm(filepath.Join(s.root, dir, file)); err != nil {
			t.Fatal(err)
		}
		err = errors.Join(s.Commit(2), s.Wait())
		if want := "step 2 not saved: " + file + " is not here as it was written"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: Commit = %v, want: %s", name, err, want)
		}
		wantLatest(t, s.root, 1, big)
		if got := names(t, s.root); len(got) != 2 {
			t.Errorf("%s: %v is left", name, got)
		}
	}
}

// A run of all elements is the whole tensor: files have the names and bytes of one who writes alone.
func TestARunOfAllElementsIsTheWholeTensor(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Log: quiet})
	tensors, state := stateAt(1, small)
	mustSave(t, s, small, 1)
	for i := range tensors {
		x := &tensors[i]
		x.Region.To = volume(x.Shape)
		if len(x.Shape) == 2 {
			x.Region.Box = Box{[]int{0, 0}, x.Shape}
		}
	}
	if err := save(s, 1, 2, tensors, state); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(at(s.root, 1, modelFile))
	b, err2 := os.ReadFile(at(s.root, 2, modelFile))
	if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the files differ; %v", err)
	}
}
