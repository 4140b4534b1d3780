package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"anneal/internal/fileio"
)

// Info describes a checkpoint by its manifest.
type Info struct {
	Name   string // of its directory
	Step   int64
	Tokens int64
	Origin
	Bytes    int64    // of all files except the manifest
	Averaged bool     // it holds an average of the weights
	Skipped  []error  // set by LoadLatest: the reasons why newer checkpoints are unusable
	Ignored  []string // files in the directory that the manifest does not list

	manifest *manifest // nil if it is unusable
}

// Entry is a directory that is, or should be, a checkpoint.
type Entry struct {
	Info
	Err error // why it is unusable; then only Name and Step are set

	sequence int64
}

// ErrNone means that a directory has no checkpoint.
var ErrNone = errors.New("no checkpoint")

// ErrOtherModel means that the tensors of a checkpoint do not match those of the run.
var ErrOtherModel = errors.New("belongs to another model")

var stepDir = regexp.MustCompile(`^step-(\d{8,18})(-\d{1,9})?$`)

// stepOf returns the step in the name of a checkpoint's directory.
func stepOf(name string) (step int64, ok bool) {
	match := stepDir.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(match[1], 10, 64)
	return step, err == nil
}

// List reads the manifests under root: usable checkpoints from newest to oldest, then unusable ones. It does not read
// tensors and needs no lock. A missing root has none. If the checkpoints are not all of one run, it returns them with
// ErrOtherRun.
func List(root string) ([]Entry, error) {
	dirs, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var entries []Entry
	for _, d := range dirs {
		step, ok := stepOf(d.Name())
		if !ok || !d.IsDir() {
			continue
		}
		entries = append(entries, readEntry(root, d.Name(), step))
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		if (a.Err == nil) != (b.Err == nil) {
			if a.Err == nil {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.sequence, a.sequence), cmp.Compare(b.Step, a.Step), cmp.Compare(b.Name, a.Name))
	})
	return entries, sameRun(root, entries)
}

func readEntry(root, name string, step int64) Entry {
	e := Entry{Info: Info{Name: name, Step: step}}
	m, err := readManifest(filepath.Join(root, name))
	if err == nil && m.Step != step {
		err = fmt.Errorf("its manifest is of step %d", m.Step)
	}
	if err != nil {
		e.Err = &Fault{Checkpoint: name, File: manifestName, Offset: -1, Err: err}
		return e
	}
	e.Tokens, e.Origin, e.Bytes = m.Tokens, m.Origin, m.bytes()
	e.sequence, e.manifest, e.Averaged = m.Sequence, m, m.has(averageKind)
	return e
}

func readManifest(dir string) (*manifest, error) {
	text, err := fileio.ReadSmall(filepath.Join(dir, manifestName), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it is missing: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return decodeManifest(text)
}
