//go:build unix

package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Pipes, sockets and devices are not read, nor waited for; what may not be read is said.
func TestSpecialFilesAreLeftOut(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "text", "closed.txt": "secret", "locked/b.txt": "secret"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"closed.txt", "locked"} {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
	}
	docs, rejects, _ := readSplits(t, dir, 0, Options{})
	if os.Getuid() == 0 { // who may read everything
		if len(docs) != 3 || rejects[NotRegular] != 2 {
			t.Errorf("%d documents, rejects %v", len(docs), rejects)
		}
	} else if len(docs) != 1 || rejects[NotRegular] != 2 || rejects[Unreadable] != 2 {
		t.Errorf("%d documents, rejects %v", len(docs), rejects)
	}
	if _, err := Open([]string{filepath.Join(dir, "pipe.txt")}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a named pipe: %v", err)
	}
}
