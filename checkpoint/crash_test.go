package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var errCrash = errors.New("the machine is off")

// faulty is the disk with a fault at one of its operations. With crash set nothing works from then on, as after a
// kill; with powerCut set, files that were not synced by then are empty afterwards.
type faulty struct {
	disk
	at       int // the operation that fails, from 1; 0 for none
	err      error
	crash    bool
	ops      int
	unsynced []string
}

// fail counts an operation and says whether it goes wrong.
func (d *faulty) fail() error {
	d.ops++
	if d.at > 0 && (d.ops == d.at || d.crash && d.ops > d.at) {
		return d.err
	}
	return nil
}

func (d *faulty) Mkdir(path string) error {
	if err := d.fail(); err != nil {
		return err
	}
	return d.disk.Mkdir(path)
}

func (d *faulty) Rename(from, to string) error {
	if err := d.fail(); err != nil {
		return err
	}
	for i, p := range d.unsynced {
		if rest, ok := strings.CutPrefix(p, from); ok {
			d.unsynced[i] = to + rest
		}
	}
	return d.disk.Rename(from, to)
}

func (d *faulty) Remove(path string) error {
	if err := d.fail(); err != nil {
		return err
	}
	return d.disk.Remove(path)
}

// RemoveAll removes what it gets to: when it fails, half the files are gone.
func (d *faulty) RemoveAll(path string) error {
	if err := d.fail(); err != nil {
		if d.ops == d.at {
			files, _ := filepath.Glob(filepath.Join(path, "*"))
			for _, f := range files[:len(files)/2] {
				os.Remove(f)
			}
		}
		return err
	}
	return d.disk.RemoveAll(path)
}

func (d *faulty) SyncDir(path string) error {
	if err := d.fail(); err != nil {
		return err
	}
	return nil // a real sync only costs time here
}

func (d *faulty) Create(path string) (writable, error) {
	if err := d.fail(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	d.unsynced = append(d.unsynced, path)
	return &faultyFile{f, d, path}, err
}

type faultyFile struct {
	f    *os.File
	d    *faulty
	path string
}

// Write writes half of p when it fails.
func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.d.fail(); err != nil {
		if f.d.ops == f.d.at {
			n, _ := f.f.Write(p[:len(p)/2])
			return n, err
		}
		return 0, err
	}
	return f.f.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.d.fail(); err != nil {
		return err
	}
	f.d.unsynced = slices.DeleteFunc(f.d.unsynced, func(p string) bool { return p == f.path })
	return nil
}

func (f *faultyFile) Close() error {
	err := f.d.fail()
	f.f.Close()
	return err
}

// A machine that stops at any operation of a save, power included, leaves either the old or the new checkpoint as the
// newest, whole; the next start clears the rest and saves again.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, powerCut := range []bool{false, true} {
		for n := 1; !crashAt(t, n, 1, powerCut); n++ {
		}
	}
	for n := 1 + rand.IntN(2); !crashAt(t, n, 2, n%4 < 2); n += 2 { // every other one: the next run tests the rest
	}
}

// crashAt lets the machine stop at an operation of a save, and reports whether the save finished before.
func crashAt(t *testing.T, n, writers int, powerCut bool) (finished bool) {
	root := t.TempDir()
	s, err := open(root, Options{Keep: 2, Log: quiet}, &faulty{})
	if err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, small, 1, 2) // the third deletes the first
	fs := &faulty{at: n, err: errCrash, crash: true}
	s.fs = fs
	tensors, state := stateAt(3, small)
	saveErr := save(s, writers, 3, tensors, state)
	finished = fs.ops < n
	s.Close()
	if powerCut {
		for _, p := range fs.unsynced {
			if err := os.Truncate(p, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	where := fmt.Sprintf("%d writers, stopped at operation %d, power cut %v", writers, n, powerCut)

	loaded, loadedState := blank(small), runState{}
	info, err := LoadLatest(root, loaded, &loadedState)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if info.Step != 3 && (info.Step != 2 || saveErr == nil) {
		t.Fatalf("%s: step %d is the newest; the save said %v", where, info.Step, saveErr)
	}
	if d := differs(loaded, loadedState, info.Step, small); d != "" {
		t.Fatalf("%s: %s", where, d)
	}
	s, err = open(root, Options{Keep: 2, Log: quiet}, &faulty{})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, name := range names(t, root) {
		if strings.Contains(name, ".tmp-") {
			t.Fatalf("%s: %s is left after the next start", where, name)
		}
	}
	mustSave(t, s, small, 3, 4)
	wantLatest(t, root, 4, small)
	s.Close()
	if got := names(t, root); len(got) != 3 {
		t.Fatalf("%s: %v after two more saves, want two checkpoints and latest", where, got)
	}
	return finished
}

// One failing operation (a full disk, a bad sector) makes one failed save: reported once by the next call, nothing
// left behind, the earlier checkpoint intact, and the next save works.
func TestErrorAtEveryOperationOfASave(t *testing.T) {
	for _, writers := range []int{1, 2} {
		for n := 1; !errorAt(t, n, writers); n += writers { // of two writers, every other one
		}
	}
}

// errorAt lets an operation of a save fail, and reports whether the save had fewer.
func errorAt(t *testing.T, n, writers int) (finished bool) {
	cause := []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS}[n%3]
	root := t.TempDir()
	s, err := open(root, Options{Log: quiet}, &faulty{})
	if err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, small, 1)
	fs := &faulty{at: n, err: cause}
	s.fs = fs
	tensors, state := stateAt(2, small)
	if writers == 1 {
		if err := s.Save(2, 20, tensors, state); err != nil {
			t.Fatalf("operation %d: Save reported %v before the write was done", n, err)
		}
		err = s.Wait()
	} else {
		err = save(s, writers, 2, tensors, state)
	}
	finished = fs.ops < n
	where := fmt.Sprintf("%d writers, operation %d of %d", writers, n, fs.ops)
	switch {
	case finished && err != nil:
		t.Fatalf("%s: no fault, but %v", where, err)
	case !finished && !errors.Is(err, cause):
		t.Fatalf("%s: error = %v, want %v", where, err, cause)
	case !finished && !strings.Contains(err.Error(), "step 2") && !strings.Contains(err.Error(), step(2)):
		t.Fatalf("%s: error %q does not name the step", where, err)
	}
	if err := s.Wait(); err != nil {
		t.Fatalf("%s: reported twice: %v", where, err)
	}
	for _, name := range names(t, root) {
		if strings.Contains(name, ".tmp-") {
			t.Fatalf("%s: %s is left", where, name)
		}
	}
	if _, err := Verify(root); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	s.fs = &faulty{}
	mustSave(t, s, small, 3)
	wantLatest(t, root, 3, small)
	s.Close()
	return finished
}

func TestFailureSurfacesAtTheNextCallWhicheverItIs(t *testing.T) {
	for name, next := range map[string]func(*Store) error{
		"Save":  func(s *Store) error { tensors, state := stateAt(3, small); return s.Save(3, 30, tensors, state) },
		"Wait":  (*Store).Wait,
		"Close": (*Store).Close,
		"Load":  func(s *Store) error { _, err := s.LoadLatest(blank(small), nil); return err },
	} {
		root := t.TempDir()
		s, err := open(root, Options{Log: quiet}, &faulty{})
		if err != nil {
			t.Fatal(err)
		}
		mustSave(t, s, small, 1)
		s.fs = &faulty{at: 4, err: syscall.EIO}
		tensors, state := stateAt(2, small)
		if err := s.Save(2, 20, tensors, state); err != nil {
			t.Fatal(err)
		}
		if err := next(s); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s after a failed save: %v, want EIO", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close reports again: %v", name, err)
		}
		want := int64(1)
		if name == "Save" {
			want = 3 // it started the new save all the same
		}
		wantLatest(t, root, want, small)
	}
}

func TestSynchronousSaveReportsItsOwnFailure(t *testing.T) {
	root := t.TempDir()
	s, err := open(root, Options{Synchronous: true, Log: quiet}, &faulty{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustSave(t, s, small, 1)
	s.fs = &faulty{at: 4, err: syscall.EIO}
	tensors, state := stateAt(2, small)
	if err := s.Save(2, 20, tensors, state); !errors.Is(err, syscall.EIO) {
		t.Errorf("Save = %v, want EIO", err)
	}
	if s.snapshot.size() > 0 {
		t.Error("a synchronous save took a snapshot")
	}
	wantLatest(t, root, 1, small)
}

// What cannot be deleted does not make the save a failure; a later one tries again.
func TestOldCheckpointThatCannotBeDeletedIsAWarning(t *testing.T) {
	root := t.TempDir()
	var log journal
	s, err := open(root, Options{Keep: 2, Log: log.logger()}, &faulty{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustSave(t, s, small, 1, 2)
	s.fs = stays{}
	mustSave(t, s, small, 3)
	if !strings.Contains(log.String(), step(1)) || !strings.Contains(log.String(), "cannot delete") {
		t.Errorf("log: %s", log.String())
	}
	s.fs = &faulty{}
	mustSave(t, s, small, 4)
	if got, want := names(t, root), []string{"latest", step(3), step(4)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

// stays does not let go of checkpoints.
type stays struct{ disk }

func (d stays) Rename(from, to string) error {
	if stepDir.MatchString(filepath.Base(from)) {
		return syscall.EROFS
	}
	return d.disk.Rename(from, to)
}
