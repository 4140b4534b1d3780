package run

import (
	"errors"
	"fmt"
	"path/filepath"

	"anneal/checkpoint"
)

// MergeReport describes the result of MergeCheckpoint.
type MergeReport struct {
	Checkpoint string `json:"checkpoint"` // its directory
	Step       int64  `json:"step"`
	Bytes      int64  `json:"bytes"`
	Unchanged  bool   `json:"unchanged"` // it was already whole and does not change
}

// MergeCheckpoint rewrites a checkpoint of the run in dir in the form that a single rank writes: whole tensors, in one
// file for each kind. It takes the newest checkpoint, or that of step if step is above 0. It writes to the directory
// out, which must be new or empty; if out is "", it replaces the checkpoint in the run. If the checkpoint is damaged,
// it returns an error and changes nothing.
func MergeCheckpoint(dir string, step int64, out string) (*MergeReport, error) {
	d := runDir(dir)
	root := d.checkpoints()
	if out == "" {
		out = root
	} else if err := CheckNewRun(out); err != nil {
		return nil, err
	}
	e, err := d.newestOrOf(step)
	if err != nil {
		return nil, err
	}
	if err := d.checkOrigin(e.Info); err != nil {
		return nil, err
	}
	info, err := checkpoint.Merge(root, e.Name, out)
	if fault := (*checkpoint.Fault)(nil); errors.As(err, &fault) {
		return nil, fmt.Errorf("%w\n  nothing was written; --step N takes another: `anneal ckpt ls %s`", err,
			d.word())
	}
	if err != nil {
		return nil, err
	}
	return &MergeReport{filepath.Join(out, info.Name), info.Step, info.Bytes, out == root && info.Name == e.Name}, nil
}

// newestOrOf returns the newest checkpoint of a run, or with a step above 0 that of the step.
func (d runDir) newestOrOf(step int64) (*checkpoint.Entry, error) {
	entries, err := checkpoint.List(d.checkpoints())
	if err != nil {
		return nil, err
	}
	var found *checkpoint.Entry
	for i := range entries {
		e := &entries[i]
		switch {
		case step > 0 && e.Step != step:
		case found == nil || step == 0 && e.Err != nil && e.Step > found.Step: // those that are unusable come last
			found = e
		}
	}
	switch {
	case found == nil && step > 0:
		return nil, fmt.Errorf("%s: %w of step %d\n  `anneal ckpt ls %s` lists its checkpoints",
			d, checkpoint.ErrNone, step, d.word())
	case found == nil:
		return nil, fmt.Errorf("%s: %w", d, checkpoint.ErrNone)
	}
	return found, found.Err
}
