package dataset

import (
	"bytes"
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

// setAside moves the dataset in dir to dir/.replaced. It copies the files of the tokenizer: the build may use them.
func setAside(dir string) error {
	shards, err := shardsOf(dir)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, moving)
	if err := moveAll(slices.Insert(shards, 0, manifestName), dir, to); err != nil {
		return err
	}
	for _, name := range tokenizersOf(dir) {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = writeFile(filepath.Join(to, name), bytes.NewReader(file))
		}
		if err != nil {
			return err
		}
	}
	return os.Rename(to, filepath.Join(dir, replaced))
}

// settle finishes what a failed or killed build left: it brings the old dataset back, or removes it if the new one is
// complete.
func settle(dir string) error {
	old, halfway := filepath.Join(dir, replaced), filepath.Join(dir, moving)
	if exists(old) {
		if Exists(dir) {
			return os.RemoveAll(old)
		}
		if err := removeNew(dir, old); err != nil {
			return err
		}
		if err := os.Rename(old, halfway); err != nil {
			return err
		}
	}
	if !exists(halfway) {
		return nil
	}
	names, err := shardsOf(halfway)
	if err != nil {
		return err
	}
	names = append(names, tokenizersOf(halfway)...)
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

// removeNew removes the shards of a build that has written no manifest, and files of a tokenizer that the old dataset
// lacks.
func removeNew(dir, old string) error {
	names, err := shardsOf(dir)
	if err != nil {
		return err
	}
	for _, name := range tokenizersOf(dir) {
		if !exists(filepath.Join(old, name)) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// tokenizersOf lists the files of the tokenizer in dir.
func tokenizersOf(dir string) (names []string) {
	for _, name := range []string{tokenizerName, tokenizerConfigName} {
		if exists(filepath.Join(dir, name)) {
			names = append(names, name)
		}
	}
	return names
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
