package curate

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"anneal/corpus"
	"anneal/internal/fileio"
)

// ending is the content of endFile, which exists from the end of a run until another one finds that the input changed.
type ending struct {
	Splits  []string        `json:"splits"`  // record.Input of the splits of the first pass
	Listing []corpus.Reject `json:"listing"` // items left out before any split was read
}

const endFile = "journal-end.json"

// finish removes what this input does not need, and writes the reports and the ending. The files between passes stay
// if a file was lost: the command fails then, and is given again.
func (r *runner) finish(rep *Report) error {
	if err := r.tidy(); err != nil {
		return err
	}
	end := ending{Listing: r.origin.listing()}
	for _, e := range r.state.maps[0] {
		end.Splits = append(end.Splits, e.Input)
	}
	b, err := json.Marshal(end)
	if err != nil {
		return err
	}
	if err := errors.Join(r.listRejects(), rep.write(r.o.Dir, r.o.TaskIndex),
		replaceFile(filepath.Join(r.o.Dir, endFile), b, r.o.TaskIndex)); err != nil {
		return err
	}
	if rep.Input.Lost != nil && rep.Input.Lost.FileCount > 0 {
		return nil
	}
	return os.RemoveAll(filepath.Join(r.o.Dir, betweenDir))
}

// readEnding reads the ending of the last run on a directory.
func readEnding(dir string) (end ending, err error) {
	b, err := fileio.ReadSmall(filepath.Join(dir, endFile), longestEnding)
	if err == nil {
		err = json.Unmarshal(b, &end)
	}
	return end, err
}

// longestEnding is far above the size of an ending of a million splits.
const longestEnding = 1 << 30

// tidy removes files of other inputs: finished ones that a journal names, and unfinished ones under such names that
// killed processes have left.
func (r *runner) tidy() error {
	wanted, known, dirs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, all := range r.state.maps {
		for _, e := range all {
			for name := range e.Files {
				wanted[name] = true
			}
		}
	}
	for _, all := range r.journal.records {
		for _, e := range all {
			for name := range e.Files {
				if !temporary(name) {
					known[name], dirs[path.Dir(name)] = true, true
				}
			}
		}
	}
	for dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(r.o.Dir, filepath.FromSlash(dir)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, f := range entries {
			name, begun := finishedName(f.Name())
			if name = dir + "/" + name; !known[name] || wanted[name] && !begun {
				continue
			}
			err := os.Remove(filepath.Join(r.o.Dir, filepath.FromSlash(dir), f.Name()))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// finishedName returns the name that a file has when it is complete, and whether it is not complete yet.
func finishedName(name string) (finished string, begun bool) {
	hidden, _ := strings.CutPrefix(name, ".")
	finished, random, _ := strings.Cut(hidden, ".tmp-")
	if len(hidden) == len(name) || random == "" {
		return name, false
	}
	return finished, true
}
