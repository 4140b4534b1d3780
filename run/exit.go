package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"anneal/internal/fileio"
)

// An Exit says how the last command that trained a run ended. It is stored as exit.json in the run directory, for
// scripts, because launchers such as mpirun lose the exit codes of their processes.
type Exit struct {
	Code   int    `json:"code"`
	Reason string `json:"reason,omitempty"` // "" if the run is complete
	Resume bool   `json:"resume"`           // `anneal resume` continues without a change
	Saved  int64  `json:"saved"`            // step of the newest checkpoint; -1 if there is none

	Rank int       `json:"rank"` // who writes this
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

const maxExit = 64 << 10

func (d runDir) exit() string { return filepath.Join(string(d), "exit.json") }

// readExit reads exit.json.
func readExit(path string) (Exit, error) {
	e := Exit{Saved: -1}
	text, err := fileio.ReadSmall(path, maxExit)
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	return e, err
}

// WriteExit writes exit.json into the run in dir, which must have begun (Options.Begun). If ranks of a run fail, only
// the first writes it; for the others WriteExit returns false.
func WriteExit(dir string, e Exit) (first bool) {
	d := runDir(dir)
	e.Saved = -1
	if step, ok := d.lastCheckpoint(); ok {
		e.Saved = step
	}
	e.Host, e.Time = hostname(), time.Now().UTC().Truncate(time.Millisecond)
	text, err := json.Marshal(e)
	if err != nil {
		return true
	}
	return !errors.Is(fileio.Create(d.exit(), append(text, '\n')), fs.ErrExist)
}
