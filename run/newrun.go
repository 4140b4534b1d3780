package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"anneal/dataset"
)

// ErrOccupied means that the directory for a new run holds other files.
var ErrOccupied = errors.New("is not empty")

// CheckNewRun returns an error unless a run can start in dir: dir does not exist and can be created, or holds only
// logs, hidden files, and the remains of a killed start. It changes nothing.
func CheckNewRun(dir string) error {
	d := runDir(dir)
	if _, err := os.Stat(d.config()); err == nil {
		return existsError(dir)
	}
	names, err := readDir(dir)
	if err != nil {
		return err
	}
	begun := slices.Contains(names, filepath.Base(d.unfinished()))
	var own []string
	for _, path := range []string{
		d.unfinished(), d.tokenizer(), d.tokenizerConfig(), d.branch(), d.checkpoints(), d.ranks(),
	} {
		own = append(own, filepath.Base(path))
	}
	for _, name := range names {
		if isLog(name) || begun && slices.Contains(own, name) {
			continue
		}
		return fmt.Errorf("%s %w: it holds %s\n  a run needs a directory of its own: "+
			"try --out %s, or another that is new or empty", dir, ErrOccupied, holdings(dir, names), example(dir))
	}
	return checkWritable(dir)
}

// isLog reports whether a file of this name, beside a run, is a log or hidden.
func isLog(name string) bool {
	return slices.Contains([]string{".log", ".out", ".err"}, filepath.Ext(name)) || strings.HasPrefix(name, ".")
}

// CheckForRuns returns an error unless dir can hold several runs in subdirectories: it must be neither a run nor a
// data set.
func CheckForRuns(dir string) error {
	if Exists(dir) {
		return fmt.Errorf("%s %w, and several runs are to be made\n  choose another --out", dir, ErrExists)
	}
	if _, err := readDir(dir); err != nil {
		return err
	}
	if dataset.Exists(dir) {
		return fmt.Errorf("%s %w: it holds a data set\n  choose another --out, such as %s",
			dir, ErrOccupied, example(dir))
	}
	return checkWritable(dir)
}

// CheckEmpty returns an error unless dir is empty or can be created.
func CheckEmpty(dir string) error {
	names, err := readDir(dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s %w: it holds %s\n  choose a directory for --out that is new or empty",
			dir, ErrOccupied, holdings(dir, names))
	}
	return checkWritable(dir)
}

// readDir returns the names in a directory; a missing one is empty.
func readDir(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("cannot use %s: %w\n  choose another --out", dir, syscall.ENOTDIR)
	case err != nil:
		return nil, fmt.Errorf("cannot read the directory of --out: %w", err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// example returns a directory that could be used instead of dir.
func example(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Join("runs", filepath.Base(dir))
}

// holdings describes the contents of a directory.
func holdings(dir string, names []string) string {
	list := strings.Join(names[:min(len(names), 3)], ", ")
	if more := len(names) - 3; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if dataset.Exists(dir) {
		return "a data set (" + list + ")"
	}
	return list
}

// checkWritable returns an error unless files can be created in dir, or in its nearest existing parent.
func checkWritable(dir string) error {
	at := filepath.Clean(dir)
	for {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".anneal-*")
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = &fs.PathError{Op: "write to", Path: at, Err: path.Err}
	}
	if err != nil {
		return fmt.Errorf("cannot make %s: %w\n  choose another --out", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
