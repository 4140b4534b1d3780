package run

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// crash is the directory for the stacks and the state of a run that crashed or stalled.
func (d runDir) crash() string { return filepath.Join(string(d), "crash") }

// WriteCrash writes a report, such as the stacks of all goroutines, into the run in dir and returns its path. what
// begins the name of the file. Without a run, such as for dir = "", it writes nothing and returns ErrNoRun.
func WriteCrash(dir, what string, report []byte) (string, error) {
	d := runDir(dir)
	if dir == "" || !Exists(dir) { // "" is not the working directory, which may hold a config.yaml
		return "", ErrNoRun
	}
	if err := os.MkdirAll(d.crash(), 0o777); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%s.txt", what, time.Now().UTC().Format("20060102T150405.000Z"))
	path := filepath.Join(d.crash(), name)
	return path, os.WriteFile(path, report, 0o666)
}
