package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"anneal/internal/fileio"
)

// Reading the files of a run while it may be in progress. Every file may be missing, and may be written at the same
// time.

// maxNote is far above the size of exit.json and timing.json.
const maxNote = 1 << 20

// MetricsFile is the path of the metrics of the run in dir.
func MetricsFile(dir string) string { return runDir(dir).metrics() }

// ReportFile is the path of the report of the run in dir.
func ReportFile(dir string) string { return runDir(dir).report() }

func (d runDir) report() string { return filepath.Join(string(d), "report.html") }

// LastExit reads how the last command that trained the run in dir ended; nil while one trains it.
func LastExit(dir string) (*Exit, error) { return readNote[Exit](runDir(dir).exit()) }

// LastTiming reads the comparison of the run in dir with its plan; nil if there is none.
func LastTiming(dir string) (*Timing, error) { return readNote[Timing](runDir(dir).timing()) }

// readNote reads a small file of JSON; nil if it is missing.
func readNote[T any](path string) (*T, error) {
	text, err := fileio.ReadSmall(path, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	note := new(T)
	if err := json.Unmarshal(text, note); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return note, nil
}

// Ranks reads where the ranks of the run in dir are, by rank; none for a run on one.
func Ranks(dir string) []Whereabouts {
	var list []Whereabouts
	names, _ := os.ReadDir(runDir(dir).ranks())
	for _, name := range names {
		if n, err := strconv.Atoi(name.Name()); err != nil || n != len(list) {
			continue
		}
		at, err := readPlace(filepath.Join(runDir(dir).ranks(), name.Name()))
		if err != nil {
			at = Whereabouts{}
		}
		list = append(list, at)
	}
	return list
}

// Journal reads the last lines of the journal of the run in dir, oldest first. Lines that cannot be read are left out.
func Journal(dir string, most int) []JournalLine {
	f, err := fileio.OpenRegular(runDir(dir).journal())
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(0, info.Size()-metricsTail)
	text := make([]byte, info.Size()-from)
	n, _ := f.ReadAt(text, from)
	var list []JournalLine
	for line := range bytes.Lines(text[:n]) {
		var l JournalLine
		if json.Unmarshal(line, &l) == nil && l.Event != "" {
			list = append(list, l)
		}
	}
	return list[max(0, len(list)-most):]
}
