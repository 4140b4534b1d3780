package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever runs this test has Go, hence its source; a GOROOT without source is passed over.
func TestGoSourceIsFoundWhereverGoIs(t *testing.T) {
	t.Setenv("GOROOT", t.TempDir())
	if dir := sourceOf(os.Getenv("GOROOT")); dir != "" {
		t.Errorf("an empty GOROOT gave %s", dir)
	}
	t.Setenv("GOROOT", "")
	dir, err := GoSource()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "net", "http", "server.go")); err != nil {
		t.Errorf("%s is not the standard library: %v", dir, err)
	}
}
