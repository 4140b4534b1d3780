package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "anneal/internal/torture"
)

func TestErrorsOfAnotherSystemAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example\n\ngo 1.26\n",
		"a.go":            "package a\n\nimport \"os\"\n\nfunc A() *os.File { return nil }\n",
		"a_windows.go":    "package a\n\nvar onWindows int = \"a string\"\n",
		"a_plan9.go":      "package a\n\nvar onPlan9 int = \"a string\"\n",
		"a_test.go":       "package a\n\nvar inATest int = \"a string\"\n",
		"a_tagged.go":     "//go:build tagged\n\npackage a\n\nvar tagged int = \"a string\"\n",
		"outside_test.go": "package a_test\n\nimport \"example\"\n\nvar outside int = a.A()\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOOS", "windows")
	problems, err := check([]string{"-tags", "tagged", "./..."})
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Join(problems, "\n")
	for _, name := range []string{"a_windows.go:3", "a_test.go:3", "a_tagged.go:5", "outside_test.go:5"} {
		if !strings.Contains(found, name) {
			t.Errorf("no error in %s; found:\n%s", name, found)
		}
	}
	if len(problems) != 4 {
		t.Errorf("%d errors, want 4:\n%s", len(problems), found)
	}
}
