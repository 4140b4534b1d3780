package checkpoint

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"anneal/internal/torture"
)

// A system call of a save that fails, or at which the machine stops, with or without the loss of what was not synced,
// leaves the old or the new checkpoint as the newest, whole; the next save works.
func TestTortureFailingSaves(t *testing.T) {
	torture.Run(t, 30, func(r *rand.Rand) (fault, outcome string) {
		size, writers := 4*(3+r.IntN(5000)), 1+2*r.IntN(2)
		s, err := open(t.TempDir(), Options{Keep: 2, Log: quiet}, &faulty{})
		if err != nil {
			t.Fatal(err)
		}
		mustSave(t, s, size, 1, 2)
		counting := &faulty{}
		s.fs = counting
		tensors, state := stateAt(3, size)
		if err := save(s, writers, 3, tensors, state); err != nil {
			t.Fatal(err)
		}
		causes := []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EDQUOT}
		fs := &faulty{at: 1 + r.IntN(counting.ops), err: causes[r.IntN(4)]}
		fault = "a system call of a save fails: " + fs.err.Error()
		powerCut := false
		if r.IntN(2) == 0 {
			fs.err, fs.crash, powerCut = errCrash, true, r.IntN(2) == 0
			fault = map[bool]string{false: "the process stops at a system call of a save",
				true: "the power is cut at a system call of a save"}[powerCut]
		}
		s.fs = fs
		tensors, state = stateAt(4, size)
		saveErr := save(s, writers, 4, tensors, state)
		s.Close()
		if powerCut {
			for _, p := range fs.unsynced {
				if err := os.Truncate(p, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
		root := s.root
		loaded, loadedState := blank(size), runState{}
		info, err := LoadLatest(root, loaded, &loadedState)
		switch {
		case err != nil:
			t.Fatalf("%s, operation %d of %d: %v", fault, fs.at, counting.ops, err)
		case info.Step != 4 && (info.Step != 3 || saveErr == nil):
			t.Fatalf("%s, operation %d of %d: step %d is the newest; Save said %v",
				fault, fs.at, counting.ops, info.Step, saveErr)
		}
		if d := differs(loaded, loadedState, info.Step, size); d != "" {
			t.Fatalf("%s, operation %d of %d, step %d: %s", fault, fs.at, counting.ops, info.Step, d)
		}
		if s, err = open(root, Options{Keep: 2, Log: quiet}, &faulty{}); err != nil {
			t.Fatalf("%s, operation %d of %d: %v", fault, fs.at, counting.ops, err)
		}
		defer s.Close()
		mustSave(t, s, size, 5)
		wantLatest(t, root, 5, size)
		for _, name := range names(t, root) {
			if strings.Contains(name, ".tmp-") {
				t.Fatalf("%s, operation %d of %d: %s is left after the next save", fault, fs.at, counting.ops, name)
			}
		}
		os.RemoveAll(root)
		outcome = map[int64]string{3: "the checkpoint before is the newest, whole",
			4: "the new checkpoint is the newest, whole"}[info.Step]
		return fault, outcome
	})
}
