package checkpoint

import (
	"bytes"
	"errors"
	"slices"
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
