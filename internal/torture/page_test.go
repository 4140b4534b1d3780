package torture

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// The page docs/reliability.md matches its report. Every Torture test has rows in it, and every row has a test.
func TestReliabilityPageIsOfTestsThatExist(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	records, err := ParseReport(text)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, PageFile))
	if err != nil || string(page) != string(Page(records)) {
		t.Errorf("%s is not what %s gives (%v)\n  go generate ./internal/torture", PageFile, ReportFile, err)
	}
	tested := map[string][]string{}
	for _, r := range records {
		tested[r.Package] = append(tested[r.Package], r.Test)
		if !slices.Contains(Tests(filepath.Join(root, r.Package)), r.Test) {
			t.Errorf("%s has no test %s", r.Package, r.Test)
		}
		if len(r.Rows) == 0 {
			t.Errorf("%s has no rows", r.Test)
		}
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		dir, err := filepath.Rel(root, path)
		for _, name := range Tests(path) {
			if !slices.Contains(tested[filepath.ToSlash(dir)], name) {
				t.Errorf("%s of %s has no rows in %s", name, dir, PageFile)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Kill kills a process at an instant of its CPU time, unless the process ends by itself.
func TestKillGoesByCPUTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU time is read on Linux alone")
	}
	busy := func() *exec.Cmd { return exec.Command("sh", "-c", "while :; do :; done") }
	cmd := busy()
	if !Kill(t, rand.New(rand.NewPCG(1, 2)), cmd, 300*time.Millisecond) {
		t.Error("an endless process was not killed")
	}
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > 600*time.Millisecond {
		t.Errorf("killed after %v of 300 ms of CPU time", used)
	}
	if Kill(t, rand.New(rand.NewPCG(1, 2)), exec.Command("true"), time.Hour) {
		t.Error("a process that ended by itself counts as killed")
	}
}
