package fileio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// After any error, and during the writing, the old file stays and no other file is visible beside it.
func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	check := func(want string) {
		t.Helper()
		got, _ := os.ReadFile(path)
		entries, _ := os.ReadDir(dir)
		if string(got) != want || want != "" && len(entries) != 1 || want == "" && len(entries) != 0 {
			t.Errorf("holds %q and %d files lie there, want %q and it alone", got, len(entries), want)
		}
	}
	fault := errors.New("fault")
	half := func(w io.Writer) error { io.WriteString(w, "ha"); return fault }
	if err := Write(path, half); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
	check("")
	err := Write(path, func(w io.Writer) error {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the name is taken before the content is written: %v", err)
		}
		_, err := io.WriteString(w, "old")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	check("old")
	if err := Write(path, half); err == nil {
		t.Error("no error")
	}
	check("old")
}

// A directory appears under its name complete. Faults, remains of a killed run, and existing files never change other
// files.
func TestADirectoryIsThereWholeOrNotAtAll(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o666) }
	if err := os.MkdirAll(filepath.Join(parent, ".out.partial", "left"), 0o777); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("fault")
	if err := Dir(out, func(tmp string) error { write(tmp); return fault }); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 0 {
		t.Errorf("%v are left", entries)
	}
	for range 2 { // the second time out is an empty directory
		if err := Dir(out, func(tmp string) error { return os.Mkdir(filepath.Join(tmp, "b"), 0o777) }); err != nil {
			t.Error(err)
		}
		os.Remove(filepath.Join(out, "b"))
	}
	if err := Dir(out, write); err != nil {
		t.Error(err)
	}
	for _, taken := range []string{out, filepath.Join(out, "a")} {
		if err := Dir(taken, write); err == nil {
			t.Errorf("%s, which is there, was replaced", taken)
		}
	}
	if got, err := os.ReadFile(filepath.Join(out, "a")); string(got) != "a" || err != nil {
		t.Errorf("holds %q, %v", got, err)
	}
}

func TestCauseLeavesThePathOut(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	if got := Cause(fmt.Errorf("open: %w", err)); !errors.Is(got, os.ErrNotExist) ||
		got.Error() != errors.Unwrap(err).Error() {
		t.Errorf("cause of %v is %v", err, got)
	}
	if other := errors.New("other"); Cause(other) != other {
		t.Errorf("%v became %v", other, Cause(other))
	}
}
