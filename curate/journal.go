package curate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
)

// entry is a line of the journal: a finished split of a pass, or a finished comparison.
type entry struct {
	record
	Tally Report `json:"tally"`
}

// record is an entry without its counts, which stay on disk until the report needs them.
type record struct {
	Step  int                `json:"step"` // 0 is the first pass, 1 the comparison after it, 2 the second pass
	Split int                `json:"split"`
	Input string             `json:"input"`           // hash of all inputs of the result
	Files map[string]written `json:"files"`           // under the directory
	Kept  int                `json:"kept"`            // documents that the next pass reads
	Parts []part             `json:"parts,omitempty"` // parts of the file of a comparison, one per split

	path   string // of the journal
	at     int64  // position of the line in the journal
	length int
}

// written describes a finished file.
type written struct {
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sum"`
}

// place identifies the split or comparison of a record.
type place struct{ step, split int }

// journal records finished work. Each task appends to its own file and reads the files of all tasks.
type journal struct {
	dir     string
	head    journalHead
	f       *os.File
	read    map[string]int64 // how far
	records map[place][]*record
	count   map[int]int // places by step
}

type journalHead struct {
	Journal  int    `json:"journal"` // version
	Pipeline string `json:"pipeline"`
	Measures string `json:"measures"` // hash of the measurements of the first pass
	Split    int64  `json:"split"`    // bytes
}

const journalVersion = 4

// ErrOtherPipeline means that another pipeline has written to the directory.
var ErrOtherPipeline = errors.New("was made by another pipeline")

func newJournal(dir string, head journalHead) *journal {
	return &journal{
		dir: dir, head: head, read: map[string]int64{}, records: map[place][]*record{}, count: map[int]int{},
	}
}

func openJournal(o Options) (*journal, error) {
	j := newJournal(o.Dir, journalHead{journalVersion, o.Pipeline.Hash(), o.Pipeline.measures, o.Split})
	if err := mayWrite(o.Dir, j.paths); err != nil {
		return nil, err
	}
	for _, path := range j.paths() {
		switch head, _, ok := readHead(path); {
		case ok && head.Journal != journalVersion:
			return nil, fmt.Errorf("%s %w: it was made by another version of anneal\n  try another --out, or remove it",
				o.Dir, ErrOtherPipeline)
		case ok && head.Pipeline != j.head.Pipeline:
			return nil, fmt.Errorf("%s %w\n  try another --out, or remove it", o.Dir, ErrOtherPipeline)
		case ok && head.Split != o.Split:
			return nil, fmt.Errorf("%s %w: its splits have %d bytes, not %d\n  try --split %d, or another --out",
				o.Dir, ErrOtherPipeline, head.Split, o.Split, head.Split)
		}
	}
	path := filepath.Join(o.Dir, "journal.jsonl")
	if o.TaskCount > 1 {
		path = filepath.Join(o.Dir, fmt.Sprintf("journal-%05d-of-%05d.jsonl", o.TaskIndex, o.TaskCount))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	j.f = f
	if err := fileio.Lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w\n  wait for it, or try another --out", path, err)
	}
	if _, _, ok := readHead(path); !ok { // new, or cut off in its first line
		if err = f.Truncate(0); err == nil {
			err = j.line(j.head)
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

// ErrForeign means that the directory holds files that `anneal data curate` did not write. Files in docs/ could
// otherwise be removed at the end.
var ErrForeign = errors.New("holds files that `anneal data curate` did not write")

// mayWrite refuses such a directory. A task that starts at the same time creates its journal first.
func mayWrite(dir string, journals func() []string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 && len(journals()) == 0 {
		return fmt.Errorf("%s %w\n  name a directory that does not exist or is empty", dir, ErrForeign)
	}
	return err
}

// mend adds a line end to a truncated last line, so that the next line is separate.
func (j *journal) mend(size int64) error {
	var last [1]byte
	if _, err := j.f.ReadAt(last[:], size-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err := j.f.Write([]byte("\n"))
	return err
}

// paths returns the journals of all tasks, sorted. The name of the directory may contain any characters, including
// those of glob patterns.
func (j *journal) paths() (paths []string) {
	entries, _ := os.ReadDir(j.dir)
	for _, e := range entries {
		if ours, _ := filepath.Match("journal*.jsonl", e.Name()); ours {
			paths = append(paths, filepath.Join(j.dir, e.Name()))
		}
	}
	return paths
}

func (j *journal) close() { j.f.Close() }

// line appends a line in one write, so that lines of several workers do not mix.
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

// readHead reads the first line of a journal and returns its length.
func readHead(path string) (head journalHead, size int64, ok bool) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return head, 0, false
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1<<16)).ReadBytes('\n')
	return head, int64(len(line)), err == nil && json.Unmarshal(line, &head) == nil && head.Journal > 0
}

// follow reads what was added to the journals of this pipeline since the last call.
func (j *journal) follow() {
	for _, path := range j.paths() {
		at, known := j.read[path]
		if !known {
			head, size, ok := readHead(path)
			if !ok || head != j.head {
				continue
			}
			at = size
		}
		j.read[path] = j.from(path, at)
	}
}

// from reads the complete lines of a journal, starting at an offset, and returns the offset after them.
func (j *journal) from(path string, at int64) int64 {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return at
	}
	defer f.Close()
	lines := bufio.NewScanner(io.NewSectionReader(f, at, math.MaxInt64-at))
	lines.Buffer(nil, longestRecord)
	lines.Split(wholeLines)
	for lines.Scan() {
		line := lines.Bytes()
		if e := readRecord(line); e != nil {
			e.path, e.at, e.length = path, at, len(line)
			p := place{e.Step, e.Split}
			if len(j.records[p]) == 0 {
				j.count[e.Step]++
			}
			j.records[p] = append(j.records[p], e)
		}
		at += int64(len(line))
	}
	return at
}

// longestRecord is far above the length of a line for a comparison of a million splits.
const longestRecord = 64 << 20

// wholeLines splits lines, including their ends. A line without an end was truncated or is still being written.
func wholeLines(data []byte, _ bool) (advance int, line []byte, err error) {
	if n := bytes.IndexByte(data, '\n') + 1; n > 0 {
		return n, data[:n], nil
	}
	return 0, nil, nil
}

// readRecord reads a line; it returns nil for a line that no curation has written. Every place that the record names
// is within the directory and its files.
func readRecord(line []byte) *record {
	e := new(record)
	if (jsonlimit.Limits{Objects: len(line)/8 + 64, Values: len(line)}).Check(line) != nil ||
		json.Unmarshal(line, e) != nil {
		return nil
	}
	if e.Input == "" || e.Step < 0 || e.Split < 0 || e.Kept < 0 {
		return nil
	}
	size := int64(0)
	for name, w := range e.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) || w.Bytes < 0 {
			return nil
		}
		size = max(size, w.Bytes)
	}
	for i, p := range e.Parts {
		if p.At < 0 || p.At > size || i > 0 && p.At < e.Parts[i-1].At {
			return nil
		}
	}
	return e
}

// find returns a record of a place with this input, or nil. All records with the same input are equal.
func (j *journal) find(p place, input string) *record {
	all := j.records[p]
	i := slices.IndexFunc(all, func(e *record) bool { return e.Input == input })
	if i < 0 {
		return nil
	}
	return all[i]
}

// tally reads the counts of an entry.
func (e *record) tally() (Report, error) {
	f, err := fileio.OpenRegular(e.path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	line := make([]byte, e.length)
	if _, err := f.ReadAt(line, e.at); err != nil {
		return Report{}, fmt.Errorf("read %s: %w", e.path, err)
	}
	whole := new(entry)
	if err := json.Unmarshal(line, whole); err != nil {
		return Report{}, fmt.Errorf("read %s: %w", e.path, err)
	}
	return whole.Tally, nil
}

// sound reports whether the files of a record exist. It compares only their sizes, unless the place was done from
// several inputs; then it compares hashes.
func (j *journal) sound(e *record, left func(name string) bool) bool {
	several := slices.ContainsFunc(j.records[place{e.Step, e.Split}],
		func(o *record) bool { return o.Input != e.Input })
	for name, w := range e.Files {
		if left(name) {
			continue
		}
		path := filepath.Join(j.dir, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if err != nil || info.Size() != w.Bytes {
			return false
		}
		if several {
			if sum, err := fileSum(path); err != nil || sum != w.Sum {
				return false
			}
		}
	}
	return true
}
