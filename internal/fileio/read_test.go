package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"anneal/internal/filetest"
)

func TestASmallFileIsReadWholeAndALargerOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, c := range []struct {
		size  int
		limit int64
		fits  bool
	}{{0, 0, true}, {0, 10, true}, {1000, 1000, true}, {1001, 1000, false}, {1, 0, false}, {5000, 1 << 40, true}} {
		text := make([]byte, c.size)
		for i := range text {
			text[i] = byte(i)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSmall(path, c.limit)
		var large TooLargeError
		switch {
		case c.fits && (err != nil || string(got) != string(text)):
			t.Errorf("%d bytes of at most %d: %d bytes, %v", c.size, c.limit, len(got), err)
		case !c.fits && (!errors.As(err, &large) || int64(large) != c.limit || got != nil):
			t.Errorf("%d bytes of at most %d: %d bytes, %v", c.size, c.limit, len(got), err)
		}
	}
}

func TestWhatIsNoFileIsRefusedAtOnce(t *testing.T) {
	for what, path := range filetest.NotFiles(t, "f") {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{path, link} {
			err := filetest.Refused(t, what, func() error { _, err := ReadSmall(path, 1<<20); return err })
			if p := new(fs.PathError); !errors.As(err, &p) || p.Path != path || p.Err != Cause(err) {
				t.Errorf("%s: %v, want a path error with %s", what, err, path)
			}
		}
	}
	if _, err := ReadSmall(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A system file may report a size of 0 and still have content.
func TestAFileWithoutASizeIsRead(t *testing.T) {
	const path = "/proc/self/status"
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Skip("no such file here")
	}
	if text, err := ReadSmall(path, 1<<20); err != nil || len(text) < 100 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	var large TooLargeError
	if _, err := ReadSmall(path, 100); !errors.As(err, &large) {
		t.Errorf("%v, want an error about its size", err)
	}
}

func TestLimitsAreNamedInTheirUnit(t *testing.T) {
	for limit, want := range map[TooLargeError]string{
		1 << 20: "larger than 1 MiB", 32 << 10: "larger than 32 KiB", 1 << 30: "larger than 1 GiB",
		1000: "larger than 1000 bytes", 0: "larger than 0 bytes",
	} {
		if limit.Error() != want {
			t.Errorf("%q, want %q", limit.Error(), want)
		}
	}
}
