package study

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"anneal/chart"
	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/lab"
	"anneal/run"
)

// Files of a study's directory, besides its runs and data sets.
const (
	studyFile  = "study.json"  // name and options of the study, written first
	reportFile = "report.json" // results of the study, written last
)

// A Dir is the directory of a study. Only one process may use it at a time.
type Dir struct {
	Path   string
	Note   func(text string) // called when a run has ended, from several goroutines; may be nil
	unlock func() error
}

// Open makes the directory of a study, or opens it to continue. name is the name of the study, and options are the
// options that decide its results; a directory with another name or other options is an error.
func Open(path, name string, options any) (*Dir, error) {
	if err := run.CheckForRuns(path); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(map[string]any{"study": name, "options": options}, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	was, err := fileio.ReadSmall(filepath.Join(path, studyFile), 1<<20)
	switch {
	case err == nil && !bytes.Equal(was, text):
		return nil, config.Problem{
			Message: fmt.Sprintf("%s holds another study:\n%s", path, bytes.TrimSpace(was)),
			Try:     "its options to go on with it, or another --out",
		}
	case errors.Is(err, fs.ErrNotExist):
		if err := run.CheckEmpty(path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	unlock, err := checkpoint.Lock(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, unlock: unlock}
	if err := d.write(studyFile, text); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return d, nil
}

// Close releases the directory.
func (d *Dir) Close() error { return d.unlock() }

// File returns the path of a file or directory of the study.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Train trains the run with the given name in the study, or the rest of it. It trains on one thread, so that studies
// can train as many models at a time as there are cores (lab.Together).
func (d *Dir) Train(ctx context.Context, name string, cfg *config.Config) (*run.Result, error) {
	cfg.Threads = 1
	begun := time.Now()
	result, err := lab.Finish(ctx, run.Options{Config: cfg, Dir: d.File(name)})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case result.Interrupted:
		return nil, context.Cause(ctx)
	case d.Note != nil && result.Timing.Steps > 0:
		d.Note(fmt.Sprintf("%s: %d steps in %s", name, result.Step, time.Since(begun).Round(time.Second)))
	}
	return result, nil
}

// A Report holds the results of a study.
type Report struct {
	Study   string         `json:"study"`
	Seen    string         `json:"seen"`    // the findings, in sentences computed from the figures
	Figures map[string]any `json:"figures"` // by name, with the unit in the name where there is one
	Charts  []*chart.Chart `json:"-"`

	Headlines []Headline `json:"headlines,omitempty"` // the same ones with every seed
}

// Write writes report.json, and each chart beside it as an SVG picture: chart-1.svg and so on.
func (d *Dir) Write(r *Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for i, c := range r.Charts {
		var picture bytes.Buffer
		if err := c.SVG(&picture); err != nil {
			return err
		}
		if err := d.write(fmt.Sprintf("chart-%d.svg", i+1), picture.Bytes()); err != nil {
			return err
		}
	}
	return d.write(reportFile, append(text, '\n'))
}

func (d *Dir) write(name string, content []byte) error {
	return fileio.Write(d.File(name), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
