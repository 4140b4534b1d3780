package curate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// entry is a line of the journal: a split that is done.
type entry struct {
	Split int              `json:"split"`
	Input string           `json:"input"` // its identity
	Files map[string]int64 `json:"files"` // that were written, under the directory, with their bytes
	Tally Report           `json:"tally"`
}

// journal is the record of the splits that are done. Each task appends to its own file and reads those of all.
type journal struct {
	dir  string
	hash string
	f    *os.File
}

type journalHead struct {
	Journal  int    `json:"journal"` // version
	Pipeline string `json:"pipeline"`
}

// ErrOtherPipeline is for a directory that another pipeline has written to.
var ErrOtherPipeline = errors.New("was made by another pipeline")

func openJournal(dir string, p *Pipeline, task, tasks int) (*journal, error) {
	j := &journal{dir: dir, hash: p.Hash()}
	for _, path := range j.paths() {
		head, _, err := readJournal(path)
		if err == nil && head.Journal > 0 && head.Pipeline != j.hash {
			return nil, fmt.Errorf("%s %w\n  try another --out, or remove it", dir, ErrOtherPipeline)
		}
	}
	path := filepath.Join(dir, "journal.jsonl")
	if tasks > 1 {
		path = filepath.Join(dir, fmt.Sprintf("journal-%05d-of-%05d.jsonl", task, tasks))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	j.f = f
	if head, _, _ := readJournal(path); head.Journal == 0 { // new, or cut off in its first line
		if err = f.Truncate(0); err == nil {
			err = j.line(journalHead{1, j.hash})
		}
	} else if info, e := f.Stat(); e == nil {
		err = j.mend(info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// mend ends a last line that was cut off, so that the next one stands alone.
func (j *journal) mend(size int64) error {
	var last [1]byte
	if _, err := j.f.ReadAt(last[:], size-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err := j.f.Write([]byte("\n"))
	return err
}

func (j *journal) paths() []string {
	paths, _ := filepath.Glob(filepath.Join(j.dir, "journal*.jsonl"))
	return paths
}

func (j *journal) close() { j.f.Close() }

func (j *journal) append(e *entry) error { return j.line(e) }

// line appends a line in one write, so that those of several workers do not mix.
func (j *journal) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = j.f.Write(append(b, '\n'))
	}
	if err == nil {
		err = j.f.Sync()
	}
	return err
}

// read returns the splits that the journals of this pipeline hold; of two lines about one split the later counts.
func (j *journal) read() map[int]*entry {
	done := map[int]*entry{}
	for _, path := range j.paths() {
		_, entries, _ := readJournal(path)
		for _, e := range entries {
			done[e.Split] = e
		}
	}
	return done
}

// readJournal reads a journal as far as it is whole.
func readJournal(path string) (head journalHead, entries []*entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return head, nil, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return head, entries, nil // a line without end was cut off
		}
		if first {
			if err := json.Unmarshal(line, &head); err != nil {
				return head, nil, err
			}
			continue
		}
		e := new(entry)
		if json.Unmarshal(bytes.TrimSpace(line), e) == nil {
			entries = append(entries, e)
		}
	}
}
