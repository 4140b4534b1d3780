package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"syscall"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/shellword"
	"anneal/internal/yaml"
	"anneal/train"
)

// Rewinding takes a run back to an earlier checkpoint and can skip batches from there on: PaLM's remedy for loss
// spikes (Chowdhery et al. 2022, arXiv 2204.02311, §5.1: restart about 100 steps before the spike and skip 200 to 500
// batches). Batches are samples of the data's order, which is a pure function of the seed, so skipping is arithmetic:
// data.skip in the run's config.yaml, which every later resume follows.
//
// A rewind writes its plan before it changes anything; a resume completes an interrupted rewind.

// StepRange stands for the batches of steps First to Last, inclusive, numbered as in metrics.jsonl.
type StepRange struct{ First, Last int }

// RewindOptions selects the target and the batches to skip.
type RewindOptions struct {
	To          int         // the run continues after the last checkpoint at or before this step
	Skip        []StepRange // batches to skip; ascending
	SkipBatches int         // number of batches to skip from the checkpoint on; exclusive with Skip
	rewound     int         // number of automatic rewinds after this one; 0 does not change the number
	Warn        func(string)
}

// RewindReport describes a completed rewind.
type RewindReport struct {
	From       int      `json:"from"` // last step before the rewind
	Step       int      `json:"step"` // step from which the run continues
	Checkpoint string   `json:"checkpoint,omitempty"`
	SetAside   []string `json:"set_aside"` // new paths of the checkpoints of later steps
	Skip       string   `json:"skip"`      // all samples that the run skips from now on
	Samples    uint64   `json:"samples"`   // skipped by this rewind
}

// RewindError reports an impossible rewind.
type RewindError struct{ message, try string }

func (e *RewindError) Error() string { return e.message + "\n  try " + e.try }

func rewindError(try, format string, args ...any) error {
	return &RewindError{fmt.Sprintf(format, args...), try}
}

// Rewind takes the run in dir back. It needs the run's lock: for a run in progress it returns a
// *checkpoint.LockedError.
func Rewind(dir string, o RewindOptions) (*RewindReport, error) {
	d := runDir(dir)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if err := finishRewind(d, o.Warn); err != nil {
		return nil, err
	}
	cfg, err := d.load()
	if err != nil {
		return nil, err
	}
	if err := refuseWeights(d); err != nil { // its only checkpoint would be set aside
		return nil, err
	}
	store, err := openToRewind(d, o.Warn)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	var now state
	if _, err := checkpoint.LoadState(d.checkpoints(), &now); err == nil && now.Domains != nil {
		return nil, rewindError("a new search in another directory",
			"%s is the proxy of a search for domain weights, which cannot skip samples", dir)
	}
	r := &RewindReport{}
	if r.From, err = lastStep(d, store); err != nil {
		return nil, err
	}
	if o.To < 0 || o.To > r.From {
		return nil, rewindError(fmt.Sprintf("--to from 0 to %d", r.From),
			"the run has not reached step %d: it is at step %d", o.To, r.From)
	}
	var last state
	if err := r.target(d, store, cfg, o, &last); err != nil {
		return nil, err
	}
	made, err := loggedAfter(d.metrics(), last.Progress, cfg.Model.Context)
	if err != nil {
		return nil, err
	}
	skip, err := o.list(cfg, made, r)
	if err != nil {
		return nil, err
	}
	plan := rewindPlan{Step: r.Step, Skip: skip.String(), Rewound: o.rewound}
	if len(plan.Skip) > maxSkips {
		return nil, rewindError("fewer ranges", "with these batches data.skip in %s would have %d KiB, more than %d",
			d.config(), len(plan.Skip)>>10, maxSkips>>10)
	}
	if err := plan.write(d); err != nil {
		return nil, err
	}
	r.Skip = plan.Skip
	r.SetAside, err = plan.carryOut(d, store, o.Warn)
	return r, err
}

// target finds the checkpoint that a rewind goes back to, and reads its state into last.
func (r *RewindReport) target(
	d runDir, store *checkpoint.Store, cfg *config.Config, o RewindOptions, last *state,
) error {
	began, err := d.branched()
	if err != nil {
		return err
	}
	info, err := store.Before(int64(o.To), last)
	for _, fault := range info.Skipped {
		o.Warn(fmt.Sprintf("an unusable checkpoint is ignored: %v", fault))
	}
	switch {
	case err == nil:
		if err := d.checkOrigin(info); err != nil {
			return err
		}
		r.Step, r.Checkpoint = int(info.Step), info.Name
	case !errors.Is(err, checkpoint.ErrNone):
		return err
	case began.Step > 0:
		return began.beforeBranch(d, o.To, err)
	case o.To == 0 && cfg.Init.From != "":
		return fmt.Errorf("%w of step 0, which had the weights of %s\n"+
			"  start again with `anneal train %s --out RUN`", err, cfg.Init.From,
			shellword.Command(d.config()))
	case o.To > 0:
		return fmt.Errorf("%w\n  --to 0 starts over from the initial weights", err)
	} // step 0 needs no checkpoint: initial weights come from the seed
	return nil
}

// list returns the samples to skip from now on. made holds the positions that the run has reached, from that of the
// checkpoint on.
func (o *RewindOptions) list(cfg *config.Config, made []train.Position, r *RewindReport) (dataset.SkipList, error) {
	list, ranges := cfg.Data.Skip, o.Skip
	if o.SkipBatches < 0 || o.SkipBatches > 0 && len(ranges) > 0 {
		return nil, rewindError("either --skip FROM:TO or --skip-batches N, with N above 0",
			"batches to skip are given twice, or their number %d is negative", o.SkipBatches)
	}
	if o.SkipBatches > cfg.Train.Steps {
		return nil, rewindError(fmt.Sprintf("--skip-batches of at most %d", cfg.Train.Steps),
			"%d batches exceed the length of the run", o.SkipBatches)
	}
	if o.SkipBatches > 0 {
		ranges = []StepRange{{r.Step + 1, r.Step + o.SkipBatches}}
	}
	before := r.Step
	var batches []uint64
	for _, s := range ranges {
		switch {
		case s.First > s.Last:
			return nil, rewindError("FROM:TO with FROM at most TO, such as 120:140",
				"the range of batches %d:%d is empty", s.First, s.Last)
		case s.First <= r.Step:
			return nil, rewindError(fmt.Sprintf("--skip %d:%d, or --to %d",
				r.Step+1, max(s.Last, r.Step+1), max(s.First-1, 0)),
				"batch %d cannot be skipped: the weights of step %d, from which the run would continue, include it",
				s.First, r.Step)
		case s.First <= before:
			return nil, rewindError("ascending ranges that do not overlap",
				"the range of batches %d:%d overlaps another, or precedes it", s.First, s.Last)
		case s.Last > cfg.Train.Steps && o.SkipBatches == 0:
			return nil, rewindError(fmt.Sprintf("batches up to %d", cfg.Train.Steps),
				"batch %d is past the end of the run, train.steps = %d", s.Last, cfg.Train.Steps)
		}
		before = s.Last
		batches = append(batches, sampleAfter(cfg, made, s.First-1), sampleAfter(cfg, made, s.Last))
	}
	for i := len(batches); i > 0; i -= 2 { // from the last, so that the numbers before it do not change
		list = list.Without(batches[i-2], batches[i-1])
		r.Samples += batches[i-1] - batches[i-2]
	}
	return list, nil
}

// sampleAfter returns the sample that follows a step. Steps up to the last in made had the batches that they had,
// whatever the configuration says now; later steps have those of the configuration.
func sampleAfter(cfg *config.Config, made []train.Position, step int) uint64 {
	after, _ := slices.BinarySearchFunc(made, step+1, func(p train.Position, step int) int { return p.Step - step })
	last := made[after-1]
	p, ramps := last, train.NewRamps(cfg)
	for p.Step < step {
		p = p.After(ramps.Next(p), min(ramps.SameFor(p), step-p.Step))
	}
	return last.Sample + uint64(p.Tokens-last.Tokens)/uint64(cfg.Model.Context)
}

// lastStep returns the last step of the run, by its newest checkpoint or its metrics.
func lastStep(d runDir, store *checkpoint.Store) (int, error) {
	later, err := store.After(-1)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, e := range later {
		last = max(last, int(e.Step))
	}
	logged, err := lastLogged(d.metrics())
	return max(last, logged), err
}

func openToRewind(d runDir, warn func(string)) (*checkpoint.Store, error) {
	return checkpoint.Open(d.checkpoints(), checkpoint.Options{Synchronous: true, Log: slog.New(warnings{warn})})
}

// rewindPlan is rewind.json, the plan of a rewind in progress. Every part can be repeated.
type rewindPlan struct {
	Step    int    `json:"step"`
	Skip    string `json:"skip"`
	Rewound int    `json:"rewound,omitempty"` // new value of guard.rewound; 0 does not change it
}

const (
	maxSkips  = yaml.MaxBytes / 2 // the size of data.skip in config.yaml, at most: some 2,000 ranges
	maxRewind = 2 * maxSkips      // size of rewind.json
)

// write makes the plan durable; from then on the rewind will be completed.
func (p rewindPlan) write(d runDir) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return writeDurably(d.rewind(), text)
}

// parseRewind reads a plan.
func parseRewind(text []byte) (p rewindPlan, err error) {
	var saved struct {
		Step    *int    `json:"step"`
		Skip    *string `json:"skip"`
		Rewound int     `json:"rewound"`
	}
	err = json.Unmarshal(text, &saved)
	switch {
	case err != nil:
		return p, err
	case saved.Step == nil || *saved.Step < 0 || saved.Skip == nil || saved.Rewound < 0:
		return p, errors.New("it does not say which step to return to, or which samples to skip")
	}
	_, err = dataset.ParseSkips(*saved.Skip)
	return rewindPlan{*saved.Step, *saved.Skip, saved.Rewound}, err
}

// carryOut executes the plan and removes it.
func (p rewindPlan) carryOut(d runDir, store *checkpoint.Store, warn func(string)) (aside []string, err error) {
	for _, part := range p.parts(d, store, &aside, warn) {
		if err := part(); err != nil {
			return aside, fmt.Errorf("the rewind to step %d is not complete: %w\n  `anneal resume %s` completes it",
				p.Step, err, d.word())
		}
	}
	return aside, nil
}

// parts returns the changes of a rewind, in order.
func (p rewindPlan) parts(d runDir, store *checkpoint.Store, aside *[]string, warn func(string)) []func() error {
	return []func() error{
		func() (err error) { *aside, err = store.SetAside(int64(p.Step)); return err },
		func() error {
			check, err := markRewound(d.metrics(), p.Step)
			if text := check.faults(d.metrics()); err == nil && text != "" {
				warn(text)
			}
			return err
		},
		d.unmarkDiverged,
		func() error { return p.configure(d) },
		func() error {
			j, err := openJournal(d, p.Step)
			if err == nil {
				j.write("rewound", fmt.Sprintf("to step %d; data.skip = %q", p.Step, p.Skip))
				j.close()
			}
			return err
		},
		func() error {
			defer fileio.SyncDir(string(d)) // repeating the plan later would set aside newer checkpoints
			return os.Remove(d.rewind())
		},
	}
}

// configure writes the skip list and the number of rewinds into the run's configuration.
func (p rewindPlan) configure(d runDir) error {
	cfg, err := d.load()
	rewound := max(p.Rewound, cfg.Guard.Rewound)
	if err != nil || cfg.Data.Skip.String() == p.Skip && cfg.Guard.Rewound == rewound {
		return err
	}
	rule := fmt.Sprintf("anneal rewind to step %d", p.Step)
	cfg.DeriveText("data.skip", p.Skip, rule)
	if p.Rewound > 0 {
		cfg.Derive("guard.rewound", rewound, rule)
	}
	return d.configure(cfg)
}

// finishRewind completes an interrupted rewind.
func finishRewind(d runDir, warn func(string)) error {
	if _, err := os.Lstat(d.rewind()); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	store, err := openToRewind(d, warn)
	if err != nil {
		return err
	}
	defer store.Close()
	text, err := fileio.ReadSmall(d.rewind(), maxRewind) // under the lock: another process may have completed it
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the run: %w", err)
	}
	p, err := parseRewind(text)
	if err != nil {
		return &dataset.Error{Err: fmt.Errorf("%s is damaged and cannot complete a rewind: %w\n"+
			"  remove it and rewind again", d.rewind(), err)}
	}
	if _, err = p.carryOut(d, store, warn); err == nil {
		warn(fmt.Sprintf("an interrupted rewind to step %d is now complete", p.Step))
	}
	return err
}
