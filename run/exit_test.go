package run

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Of ranks that fail together one writes exit.json. Whoever reads it meanwhile finds nothing or all of it, and no other
// file is left.
func TestTheFirstExitIsWhole(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	var firsts atomic.Int32
	for range 8 {
		wait.Go(func() {
			if WriteExit(dir, Exit{}) {
				firsts.Add(1)
			}
		})
		wait.Go(func() {
			if _, err := readExit(runDir(dir).exit()); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 || firsts.Load() != 1 {
		t.Errorf("%d ranks were first, the files are %v, %v", firsts.Load(), files, err)
	}
}
