package fileio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Whatever goes wrong on the way, the old file stays and nothing lies beside it; while it is written, too.
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

func TestCauseLeavesThePathOut(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	if got := Cause(fmt.Errorf("open: %w", err)); !errors.Is(got, os.ErrNotExist) || got.Error() != errors.Unwrap(err).Error() {
		t.Errorf("cause of %v is %v", err, got)
	}
	if other := errors.New("other"); Cause(other) != other {
		t.Errorf("%v became %v", other, Cause(other))
	}
}
