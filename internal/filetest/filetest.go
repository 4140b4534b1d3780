// Package filetest holds helpers for tests of files: comparing directories byte by byte, and checking that bad files
// are rejected. It imports nothing of this module.
package filetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Contents returns the content of every file under dir by its relative path, except files whose names begin with
// except, if that is not empty.
func Contents(t testing.TB, dir, except string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || except != "" && strings.HasPrefix(e.Name(), except) {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Same fails the test for every file that is not in both with the same bytes.
func Same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if b, ok := got[name]; !ok || b != want[name] {
			t.Errorf("%s: %s has %d bytes (there: %t) and should have %d others",
				what, name, len(b), ok, len(want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s should not be there", what, name)
		}
	}
}
