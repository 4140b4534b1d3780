package fileio

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// One process at a time fills a directory, and finds no files of a killed one.
func TestDirIsFilledByOne(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := errors.Join(os.Mkdir(out, 0o777),
		os.MkdirAll(filepath.Join(filepath.Dir(out), ".out.partial", "left", "by"), 0o777)); err != nil {
		t.Fatal(err)
	}
	err := Dir(out, func(tmp string) error {
		if entries, _ := os.ReadDir(tmp); len(entries) != 0 {
			t.Errorf("of a killed process %v is left", entries)
		}
		if err := Dir(out, func(string) error { return nil }); runtime.GOOS != "windows" && !errors.Is(err, ErrLocked) {
			t.Errorf("a second one: %v", err)
		}
		return os.WriteFile(filepath.Join(tmp, "a"), nil, 0o666)
	})
	if entries, _ := os.ReadDir(out); err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("holds %v, %v", entries, err)
	}
}

// A directory that could not be replaced at the end, such as the current directory, is refused at the beginning.
func TestDirRefusesWhatCannotBeReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Dir(".", func(string) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "name a directory in it") {
		t.Errorf("the current directory: %v", err)
	}
}
