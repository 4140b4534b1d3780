package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Verify reads while a run saves and deletes what it no longer keeps; that is no damage.
func TestVerifyOfALiveRunRaisesNoFalseAlarm(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1, 2)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		tensors, state := stateAt(3, small)
		for step := int64(3); ; step++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := errors.Join(s.Save(step, step, tensors, state), s.Wait()); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for i := range 200 {
		if good, err := Verify(root); err != nil || len(good) == 0 {
			t.Errorf("try %d: Verify = %v, %v", i, good, err)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// A lock whose file is deleted no longer keeps others out. The next save takes it again, or says who has it.
func TestADeletedLockIsTakenAgainOrRefused(t *testing.T) {
	root := t.TempDir()
	var log journal
	s, err := Open(root, Options{Log: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustSave(t, s, small, 1)
	remove := func() {
		if err := os.Remove(filepath.Join(root, ".lock")); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	mustSave(t, s, small, 2)
	if !strings.Contains(log.String(), "was deleted") {
		t.Errorf("nothing was said: %s", log.String())
	}
	if _, err := Open(root, Options{Log: quiet}); !errors.As(err, new(*LockedError)) {
		t.Errorf("another process got in: %v", err)
	}
	remove()
	other := mustOpen(t, root, Options{Log: quiet})
	tensors, state := stateAt(3, small)
	if err := s.Save(3, 3, tensors, state); !errors.As(err, new(*LockedError)) {
		t.Errorf("Save beside another process = %v, want a LockedError", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	wantLatest(t, root, 2, small)
}

// picky is a state that can be impossible.
type picky struct{ Step, Extra int64 }

func (p *picky) Check(step, _ int64) error {
	if p.Step != step {
		return errors.New("it is of another step")
	}
	return nil
}

// A state that does not parse, or that cannot be, is damage: the checkpoint before is used, and nothing of the bad
// state remains.
func TestAnImpossibleStateFallsBackLikeDamage(t *testing.T) {
	for name, bad := range map[string]any{
		"of another step":  picky{Step: 7, Extra: 7},
		"not of this type": map[string]any{"Step": "two", "Extra": 7},
		"no object":        []int{1},
	} {
		root := t.TempDir()
		s := mustOpen(t, root, Options{Log: quiet})
		tensors, _ := stateAt(1, small)
		err := errors.Join(s.Save(1, 1, tensors, picky{Step: 1}), s.Save(2, 2, tensors, bad), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		var got picky
		info, err := LoadLatest(root, blank(small), &got)
		if err != nil || info.Step != 1 || got != (picky{Step: 1}) || len(info.Skipped) != 1 {
			t.Errorf("%s: LoadLatest took step %d with %+v, %v", name, info.Step, got, err)
		}
		_, err = LoadStep(root, 2, blank(small), &got)
		wantFault(t, err, stateName, "", -1)
	}
}
