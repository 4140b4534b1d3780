package prepare

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

func TestStandardLibraryLeavesOutTheTools(t *testing.T) {
	source, err := GoSource()
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := standardLibrary(source)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, d := range dirs {
		has[filepath.Base(d)] = true
	}
	if !has["net"] || !has["fmt"] || has["cmd"] || has["vendor"] {
		t.Errorf("%v", dirs)
	}
}
