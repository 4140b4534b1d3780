//go:build unix

package safetensors

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe in place of a file is an error at once: nobody waits for what writes to it.
func TestPipesAreRefused(t *testing.T) {
	for _, name := range []string{"model.safetensors", indexName} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		for what, open := range map[string]func() error{
			"file":      func() error { _, err := Open(path); return err },
			"directory": func() error { _, err := OpenDir(dir); return err },
		} {
			done := make(chan error, 1)
			go func() { done <- open() }()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), "not a regular file") {
					t.Errorf("%s as a %s: %v", name, what, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s as a %s: opening it waits", name, what)
			}
		}
	}
}
