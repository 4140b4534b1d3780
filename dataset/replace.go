package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
)

// A dataset that is being replaced waits in a directory within its own until the new one is complete. If that fails it
// comes back, after a kill at the start of the next build.
const (
	replaced = ".replaced" // holds the whole old dataset
	moving   = ".moving"   // holds a part of it, on the way there or back; the rest is where it belongs
)

// setAside moves the dataset in dir to dir/.replaced.
func setAside(dir string) error {
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	if err := moveAll(slices.Insert(names, 0, manifestName), dir, filepath.Join(dir, moving)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, moving), filepath.Join(dir, replaced))
}

// settle finishes what a failed or killed build left: it brings the old dataset back, or removes it if the new one is
// complete.
func settle(dir string) error {
	old, halfway := filepath.Join(dir, replaced), filepath.Join(dir, moving)
	if exists(old) {
		if Exists(dir) {
			return os.RemoveAll(old)
		}
		if err := removeFiles(dir); err != nil {
			return err
		}
		if err := os.Rename(old, halfway); err != nil {
			return err
		}
	}
	if !exists(halfway) {
		return nil
	}
	names, err := filesOf(halfway)
	if err != nil {
		return err
	}
	if err := moveAll(append(names, manifestName), halfway, dir); err != nil {
		return err
	}
	return os.RemoveAll(halfway)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// moveAll moves files, in order, from one directory to another. One that is there already was moved before.
func moveAll(names []string, from, to string) error {
	for _, name := range names {
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(from, name), target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fileio.SyncDir(filepath.Dir(target))
	}
	return nil
}

// removeFiles removes the files of a build that has written no manifest.
func removeFiles(dir string) error {
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// filesOf lists the files of a dataset in dir, also of an incomplete one, without the manifest: shards and tokenizer.
func filesOf(dir string) ([]string, error) {
	names, err := shardsOf(dir)
	for _, name := range []string{tokenizerName, tokenizerConfigName} {
		if exists(filepath.Join(dir, name)) {
			names = append(names, name)
		}
	}
	return names, err
}

// shardsOf lists the shards in dir, complete or not.
func shardsOf(dir string) (names []string, err error) {
	for _, split := range []string{"train", "val"} {
		entries, err := os.ReadDir(filepath.Join(dir, split))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), temporary)
			if ours, _ := filepath.Match("[0-9][0-9][0-9][0-9][0-9].tokens", name); ours {
				names = append(names, filepath.Join(split, e.Name()))
			}
		}
	}
	return names, nil
}
