package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A checkpoint in pieces, merged, has the files that one process would have written, to the byte, and its hashes.
func TestMergedIsWhatOneProcessWrites(t *testing.T) {
	const big = 2*chunkBytes + 400
	root, alone := t.TempDir(), t.TempDir()
	s, one := mustOpen(t, root, Options{Log: quiet}), mustOpen(t, alone, Options{Log: quiet})
	for _, step := range []int64{1, 2} {
		tensors, state := stateAt(step, big)
		if err := errors.Join(save(s, 3, step, tensors, state), save(one, 1, step, tensors, state)); err != nil {
			t.Fatal(err)
		}
	}
	weights, optimizer, _, err := Hash(root)
	if err != nil {
		t.Fatal(err)
	}
	same := func(dir, name string) {
		t.Helper()
		for _, file := range []string{modelFile, optimFile, stateName, manifestName} {
			got, err := os.ReadFile(filepath.Join(dir, name, file))
			want, err2 := os.ReadFile(filepath.Join(alone, name[:13], file))
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s of %s/%s is not what one process writes: %v", file, dir, name, err)
			}
		}
		if _, err := Verify(dir); err != nil {
			t.Error(err)
		}
	}
	out := filepath.Join(t.TempDir(), "merged")
	info, err := Merge(root, step(2), out) // while the run goes on
	if err != nil || info.Name != step(2) || info.Step != 2 || info.Tokens != 20 {
		t.Fatalf("Merge = %+v, %v", info, err)
	}
	same(out, info.Name)
	if w, o, _, err := Hash(out); w != weights || o != optimizer || err != nil {
		t.Errorf("Hash = %s, %s, %v; before %s, %s", w, o, err, weights, optimizer)
	}
	if _, err := Merge(root, step(2), root); !errors.As(err, new(*LockedError)) {
		t.Errorf("Merge in the directory of a run that goes on = %v, want a LockedError", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// In place, the older one: it does not become the newest.
	if info, err = Merge(root, step(1), root); err != nil {
		t.Fatal(err)
	}
	same(root, info.Name)
	if got, want := names(t, root), []string{"latest", info.Name, step(2)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "latest")); string(text) != step(2)+"\n" {
		t.Errorf("latest is %s", text)
	}
	wantLatest(t, root, 2, big)
	if again, err := Merge(root, info.Name, root); err != nil || again.Name != info.Name {
		t.Errorf("a whole one is merged again: %+v, %v", again, err)
	}
}

// A step that was saved twice is merged like any other. The result has the name that the first save has freed.
func TestAStepSavedTwiceIsMerged(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	tensors, state := stateAt(1, small)
	if err := errors.Join(save(s, 2, 1, tensors, state), save(s, 2, 1, tensors, state), s.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := Merge(root, step(1)+"-2", root)
	if err != nil || info.Name != step(1) || !info.manifest.isWhole() {
		t.Fatalf("Merge = %+v, %v", info, err)
	}
	if got, want := names(t, root), []string{"latest", step(1)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "latest")); string(text) != step(1)+"\n" {
		t.Errorf("latest is %s", text)
	}
	wantLatest(t, root, 1, small)
}

// Damage is found before anything is replaced.
func TestADamagedCheckpointIsNotMerged(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	tensors, state := stateAt(1, small)
	if err := errors.Join(save(s, 2, 1, tensors, state), s.Close()); err != nil {
		t.Fatal(err)
	}
	edit(t, at(root, 1, "optim.r00001.safetensors"), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	_, err := Merge(root, step(1), root)
	wantFault(t, err, "optim.r00001.safetensors", "embed.m", -2)
	if got := names(t, root); !slices.Equal(got, []string{"latest", step(1)}) {
		t.Errorf("the directory holds %v", got)
	}
}
