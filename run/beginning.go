package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/shellword"
)

// A branch begins with a checkpoint of another run, and branch.json says so. Without its checkpoints it cannot start
// over, because the seed does not give its first weights.

// branchPoint is the content of branch.json.
type branchPoint struct {
	From string `json:"from"` // the directory of the other run at that time
	Step int    `json:"step"` // the first checkpoint of the branch is of this step
}

const maxBranchPoint = 64 << 10

func (d runDir) branch() string { return filepath.Join(string(d), "branch.json") }

// newBranchPoint returns the text of branch.json.
func newBranchPoint(from string, step int) ([]byte, error) {
	if abs, err := filepath.Abs(from); err == nil {
		from = abs
	}
	text, err := json.Marshal(branchPoint{from, step})
	return append(text, '\n'), err
}

// branched returns where the run began if it is a branch, else the zero value.
func (d runDir) branched() (b branchPoint, err error) {
	text, err := fileio.ReadSmall(d.branch(), maxBranchPoint)
	if errors.Is(err, fs.ErrNotExist) {
		return d.branchedEarly()
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err == nil && b.Step < 0 {
		err = fmt.Errorf("its step is %d", b.Step)
	}
	if err != nil {
		return b, &dataset.Error{Err: fmt.Errorf("%s, which says where the run began, cannot be read: %w\n"+
			"  restore it: {\"from\": RUN, \"step\": N}", d.branch(), err)}
	}
	return b, nil
}

// branchedEarly is branched for a branch of an early version, which has no branch.json: its journal began at the step
// that precedes its metrics.
func (d runDir) branchedEarly() (branchPoint, error) {
	before, err := d.past()
	if err != nil || before.first == 0 {
		return branchPoint{}, err
	}
	logged, _, err := firstLogged(d.metrics())
	if err != nil || logged > 0 && logged != before.first+1 {
		return branchPoint{}, err
	}
	return branchPoint{"another run", before.first}, nil
}

// startOver returns an error, which wraps none, if a run without a checkpoint cannot start over, or if it had one: the
// directory may be on a disk that is not mounted, and starting over would remove the metrics.
func (d runDir) startOver(cfg *config.Config, none error) error {
	b, err := d.branched()
	switch {
	case err != nil:
		return err
	case b.Step > 0:
		return fmt.Errorf("%w, but the run is a branch, which began with that of step %d of %s\n"+
			"  restore %s, or make the branch again with `anneal branch RUN --at %[2]d --out NEW`",
			none, b.Step, b.From, d.checkpoints())
	case cfg.Init.From != "":
		return fmt.Errorf("%w: it held the initial weights, those of %s\n"+
			"  start it again with `anneal train %s --out RUN`", none, cfg.Init.From,
			shellword.Command(d.config()))
	}
	why, err := d.hadCheckpoint(cfg)
	if err != nil || why == "" {
		return err
	}
	return fmt.Errorf("%w, but %s\n  restore %s, or start over with `anneal rewind %s --to 0`",
		none, why, d.checkpoints(), d.word())
}

// notFromStart says why a run without a checkpoint cannot start over, and what to do; "" if it can.
func (d runDir) notFromStart(cfg *config.Config) string {
	err := d.startOver(cfg, checkpoint.ErrNone)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, checkpoint.ErrNone):
		return "there is " + err.Error()
	}
	return err.Error()
}

// hadCheckpoint says what shows that the run had a checkpoint since it last began at step 0; "" if nothing does.
// Damage of the metrics is reported when they are opened.
func (d runDir) hadCheckpoint(cfg *config.Config) (string, error) {
	before, err := d.past()
	switch {
	case err != nil:
		return "", err
	case before.saved:
		return "its journal shows that it had one", nil
	case before.afresh:
		return "", nil
	}
	if e, err := readExit(d.exit()); err == nil && e.Saved >= 0 {
		return fmt.Sprintf("%s says that it had one of step %d", filepath.Base(d.exit()), e.Saved), nil
	}
	if _, first, err := firstLogged(d.metrics()); err == nil && first > 1 {
		return fmt.Sprintf("%s begins after step %d", filepath.Base(d.metrics()), first-1), nil
	}
	every := cfg.Checkpoint.Every
	logged, err := lastLogged(d.metrics())
	// Runs that may rewind automatically sometimes skip checkpoints.
	if err != nil || every == 0 || logged <= 2*every || cfg.Guard.OnDivergence == config.Rewind {
		return "", nil
	}
	return fmt.Sprintf("the run was at step %d and checkpoint.every = %d", logged, every), nil
}

// beforeBranch returns the error that a rewind to a step cannot reach its target because the run, a branch, began
// after it or has lost the checkpoint it began with.
func (b branchPoint) beforeBranch(d runDir, to int, none error) error {
	if to < b.Step {
		try := fmt.Sprintf("--to %d, or `anneal branch RUN --at STEP --out NEW` for an earlier step", b.Step)
		return rewindError(try, "%s has no step %d of its own: it is a branch, which began with step %d of %s",
			d, to, b.Step, b.From)
	}
	return fmt.Errorf("%w\n  make the branch again with `anneal branch RUN --at %d --out NEW`: it began with that "+
		"step of %s", none, b.Step, b.From)
}
