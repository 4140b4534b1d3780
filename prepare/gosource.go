package prepare

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoGoSource says that this machine has no source of the Go standard library.
var ErrNoGoSource = errors.New("cannot find the source of the Go standard library\n" +
	"  install Go and add it to PATH, or set GOROOT to its directory")

// GoSource returns the directory with the source of the Go standard library: the src directory of $GOROOT, otherwise
// of the output of `go env GOROOT`.
func GoSource() (string, error) {
	if dir := sourceOf(os.Getenv("GOROOT")); dir != "" {
		return dir, nil
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", ErrNoGoSource
	}
	if dir := sourceOf(strings.TrimSpace(string(root))); dir != "" {
		return dir, nil
	}
	return "", ErrNoGoSource
}

// standardLibrary returns the directories of the standard library. It leaves out the tools in cmd, whose generated
// tables would outweigh the rest, and copies of other projects.
func standardLibrary(source string) ([]string, error) {
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "cmd" && e.Name() != "vendor" {
			dirs = append(dirs, filepath.Join(source, e.Name()))
		}
	}
	return dirs, nil
}

// sourceOf returns root/src if the standard library is there, otherwise "".
func sourceOf(root string) string {
	if root == "" {
		return ""
	}
	dir := filepath.Join(root, "src")
	if _, err := os.Stat(filepath.Join(dir, "fmt", "print.go")); err != nil {
		return ""
	}
	return dir
}
