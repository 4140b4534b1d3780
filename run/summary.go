package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/model"
	"anneal/train"
)

// RunState says what a run is doing, or how it stopped.
type RunState string

const (
	Running      RunState = "running"       // a process holds its lock
	Finished     RunState = "finished"      // its last step is saved
	Stopped      RunState = "stopped"       // before its last step, and can be resumed
	Diverged     RunState = "diverged"      // the guard stopped it
	Damaged      RunState = "damaged"       // its configuration or its newest checkpoint cannot be used
	NoCheckpoint RunState = "no checkpoint" // it ended before it saved
	Imported     RunState = "imported"      // only weights, from a model that other tools wrote
	Derived      RunState = "derived"       // only weights, averaged or compressed from those of a run
)

// Summary is an overview of a run, from its files.
type Summary struct {
	Dir                     string
	State                   RunState
	Err                     error     // what is damaged; nil if nothing is
	Step, Steps             int       // done, and planned (0 for weights alone); if stopped, as a resume will find them
	TrainLoss               float64   // nats per token; NaN without one
	ValLoss, ValBitsPerByte float64   // of the last evaluation; NaN without one
	ValStep                 int       // of the last evaluation
	Parameters              int64     // 0 if the shape is unknown
	Bytes                   int64     // on disk, of all files
	Changed                 time.Time // when a file of the run was last written
}

// Summarize summarises the run in dir, which may be in progress. It reads no tensors and changes nothing.
func Summarize(dir string) Summary {
	d := runDir(dir)
	s := Summary{Dir: dir, TrainLoss: math.NaN(), ValLoss: math.NaN(), ValBitsPerByte: math.NaN()}
	s.measure()
	cfg, err := d.load()
	if err != nil {
		s.State, s.Err = Damaged, err
		return s
	}
	s.Steps = cfg.Train.Steps
	var last state
	info, err := checkpoint.LoadState(d.checkpoints(), &last)
	saved := err == nil
	if saved {
		s.take(&last)
		err = errors.Join(info.Skipped...)
	}
	if !errors.Is(err, checkpoint.ErrNone) {
		s.Err = err
	}
	s.Parameters = parameters(cfg, last.Model.Vocab)
	lines := lastMetrics(d.metrics())
	s.State = stateOf(d, cfg, &last, saved, s.Err, lines)
	if s.State == Imported || s.State == Derived {
		s.Steps = 0
	}
	for _, l := range lines {
		if s.State == Running || s.State == Diverged || l.Step <= s.Step {
			s.follow(l)
		}
	}
	return s
}

// stateOf decides which of the states a run is in.
func stateOf(d runDir, cfg *config.Config, last *state, saved bool, fault error, lines []train.Event) RunState {
	switch {
	case d.held():
		return Running
	case fault != nil:
		return Damaged
	case saved && last.Imported:
		return Imported
	case saved && last.Config == nil:
		return Derived
	case isFile(d.diverged()), gaveUp(lines, cfg.Guard.MaxSkips): // runs of an early version have no diverged.json
		return Diverged
	case !saved:
		return NoCheckpoint
	case last.Progress.Step >= cfg.Train.Steps, cfg.Train.Minutes > 0 && d.ended():
		return Finished
	}
	return Stopped
}

// take takes the figures of a checkpoint.
func (s *Summary) take(last *state) {
	s.Step = last.Progress.Step
	if last.Config == nil {
		return // it was not trained here
	}
	s.TrainLoss = last.TrainLoss
	if last.EvalStep > 0 {
		s.ValLoss, s.ValBitsPerByte, s.ValStep = last.ValLoss, last.ValBitsPerByte, last.EvalStep
	}
}

// follow takes the figures of a later line of metrics.jsonl.
func (s *Summary) follow(e train.Event) {
	s.Step = max(s.Step, e.Step)
	if !e.Skipped {
		s.TrainLoss = e.Loss
	}
	if e.Evaluated() {
		s.ValLoss, s.ValBitsPerByte, s.ValStep = e.ValLoss, e.ValBitsPerByte, e.Step
	}
}

// parameters returns the number of parameters of a run's model; 0 if neither the configuration nor a checkpoint has
// the size of the vocabulary.
func parameters(cfg *config.Config, saved int) int64 {
	c := cfg.Model
	c.Vocab = cmp.Or(c.Vocab, saved)
	policy, err := train.PolicyOf(cfg)
	if err != nil || c.Vocab < 1 || c.Vocab > maxVocabulary {
		return 0
	}
	return model.Outline(c, policy).Count()
}

// maxVocabulary is far beyond every vocabulary.
const maxVocabulary = 1 << 24

// measure adds up the sizes of the run's files, and finds the newest. Files that appear or disappear meanwhile do not
// matter.
func (s *Summary) measure() {
	filepath.WalkDir(s.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			s.Bytes += info.Size()
			if info.ModTime().After(s.Changed) {
				s.Changed = info.ModTime()
			}
		}
		return nil
	})
}

// gaveUp reports whether metrics.jsonl ends with as many skipped updates as end a run.
func gaveUp(lines []train.Event, most int) bool {
	row := 0
	for _, l := range lines {
		row++
		if !l.Skipped {
			row = 0
		}
	}
	return most > 0 && row >= most
}

// held reports whether a process trains the run. The lock of the checkpoints names its holder; that of a process
// that was killed is free.
func (d runDir) held() bool {
	f, err := fileio.OpenRegular(filepath.Join(d.checkpoints(), ".lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		return false
	}
	return fileio.Locked(f)
}

// metricsTail is the number of bytes read from the end of metrics.jsonl: some hundred lines.
const metricsTail = 256 << 10

// lastMetrics returns the last lines of metrics.jsonl that belong to the run's current history. Incomplete lines are
// left out.
func lastMetrics(path string) []train.Event {
	f, err := fileio.OpenRegular(path)
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
	var lines []train.Event
	for i, line := range strings.SplitAfter(string(text[:n]), "\n") {
		var e train.Event
		whole := strings.HasSuffix(line, "\n") && (i > 0 || from == 0)
		if whole && json.Unmarshal([]byte(line), &e) == nil && !e.Rewound {
			lines = append(lines, e)
		}
	}
	return lines
}

// FindRuns returns the directories of the runs in and below dir, in order of their names. dir may be a symbolic link;
// below it links are not followed. It does not look into runs and hidden directories. warn receives errors about
// directories that cannot be read.
func FindRuns(dir string, warn func(error)) ([]string, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	var runs []string
	root := filepath.Clean(dir) + string(filepath.Separator) // the target of a link, not the link
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			warn(err)
			return nil
		case !e.IsDir():
			return nil
		case path != root && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case runDir(path).looksLikeRun():
			runs = append(runs, filepath.Clean(path))
			return fs.SkipDir
		}
		return nil
	})
	return runs, err
}

// looksLikeRun reports whether a directory holds a run: a config.yaml, a name that many programs use, and something
// else that only runs have. A tokenizer.json is not enough, because it may be beside the config of a future run.
func (d runDir) looksLikeRun() bool {
	if !Exists(string(d)) {
		return false
	}
	for _, path := range []string{d.checkpoints(), d.metrics()} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
