package torture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page names tests that exist.
func TestFaultsNameTestsThatExist(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	known, test := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(text, -1) {
			known[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Faults {
		if (len(f.Tests) > 0) == (f.Why != "") {
			t.Errorf("%s: tests %q, why not %q", f.Name, f.Tests, f.Why)
		}
		for _, name := range f.Tests {
			if !known[name] {
				t.Errorf("%s: there is no test %s", f.Name, name)
			}
		}
	}
}
