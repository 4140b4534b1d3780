package dash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/machine"
	"anneal/run"
)

// A Watch follows runs by their directories. It may be used from several goroutines.
type Watch struct {
	id    string // random
	runs  []*watched
	found int // runs, some of which may be too many to watch
}

// watched is a run with its data.
type watched struct {
	dir    string
	points *follower

	mu    sync.Mutex
	cfg   *config.Config // changes when the run is resumed with another
	facts facts
	fault error // why the metrics cannot be read; nil if they can
}

// facts is the content of a run's small files.
type facts struct {
	read        time.Time
	summary     run.Summary
	checkpoints []checkpoint.Entry
	journal     []run.JournalLine
	timing      *run.Timing
	exit        *run.Exit
	ranks       []run.Whereabouts
	samples     []run.Samples
	free        int64 // bytes of the disk; -1 if not known
	fault       error // of one of the files
}

const (
	maxRuns      = 32
	journalLines = 50                     // that are shown
	journalRead  = 10_000                 // last lines of the journal, among which its last start is searched
	pollEvery    = 500 * time.Millisecond // what a run appends
	factsEvery   = 2 * time.Second        // its other files
	maxSamples   = 20                     // newest steps whose texts are shown
)

// New watches the runs in dirs. A directory that is no run stands for the runs in and below it. Of more runs than can
// be shown beside each other, it watches those that changed last.
func New(dirs []string) (*Watch, error) {
	w := &Watch{id: rand.Text()}
	var found []string
	for _, dir := range dirs {
		below, err := runsIn(filepath.Clean(dir))
		if err != nil {
			return nil, err
		}
		for _, d := range below {
			if !slices.Contains(found, d) {
				found = append(found, d)
			}
		}
	}
	w.found = len(found)
	for _, dir := range newest(found, maxRuns) {
		cfg, err := run.Config(dir)
		if err != nil {
			return nil, err
		}
		w.runs = append(w.runs,
			&watched{dir: dir, cfg: cfg, points: newFollower(run.MetricsFile(dir)), facts: readFacts(dir)})
	}
	return w, nil
}

// runsIn returns dir, if it is a run, or the runs below it.
func runsIn(dir string) ([]string, error) {
	_, err := run.Config(dir)
	if err == nil {
		return []string{dir}, nil
	}
	if run.Exists(dir) {
		return nil, err
	}
	below, findErr := run.FindRuns(dir, func(error) {})
	if findErr != nil || len(below) == 0 {
		return nil, err
	}
	return below, nil
}

// newest returns the n runs of dirs that changed last, in the order of dirs.
func newest(dirs []string, n int) []string {
	if len(dirs) <= n {
		return dirs
	}
	changed := map[string]time.Time{}
	for _, dir := range dirs {
		changed[dir] = run.Summarize(dir).Changed
	}
	last := slices.SortedFunc(slices.Values(dirs), func(a, b string) int { return changed[b].Compare(changed[a]) })[:n]
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return !slices.Contains(last, dir) })
}

// Omitted returns how many runs are not watched because others changed later.
func (w *Watch) Omitted() int { return w.found - len(w.runs) }

// Dirs returns the directories of the runs.
func (w *Watch) Dirs() []string {
	dirs := make([]string, len(w.runs))
	for i, r := range w.runs {
		dirs[i] = r.dir
	}
	return dirs
}

// Follow reads what the runs write until ctx ends.
func (w *Watch) Follow(ctx context.Context) {
	var group sync.WaitGroup
	for _, r := range w.runs {
		group.Go(func() {
			for {
				r.refresh(time.Now())
				select {
				case <-ctx.Done():
					return
				case <-time.After(pollEvery):
				}
			}
		})
	}
	group.Wait()
}

// Read reads everything that the runs have written so far, once.
func (w *Watch) Read() {
	var group sync.WaitGroup
	for _, r := range w.runs {
		group.Go(func() { r.refresh(time.Now()) })
	}
	group.Wait()
}

// refresh reads new data. Small files come first: they are shown while a long file is still being read.
func (r *watched) refresh(now time.Time) {
	r.mu.Lock()
	due := now.Sub(r.facts.read) >= factsEvery
	r.mu.Unlock()
	if due {
		f := readFacts(r.dir)
		cfg, err := run.Config(r.dir)
		if err != nil {
			cfg = r.config() // it is being edited
		}
		r.mu.Lock()
		r.facts, r.cfg = f, cfg
		r.mu.Unlock()
	}
	err := r.poll()
	r.mu.Lock()
	r.fault = err
	r.mu.Unlock()
}

// config returns the run's config as it was last read.
func (r *watched) config() *config.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg
}

// poll reads new metrics. It turns a panic into an error, so that a defect here stops nothing else.
func (r *watched) poll() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("metrics cannot be read: %v", p)
		}
	}()
	return r.points.poll()
}

func readFacts(dir string) facts {
	f := facts{
		read: time.Now(), summary: run.Summarize(dir), journal: run.Journal(dir, journalRead), ranks: run.Ranks(dir),
		samples: run.ReadSamples(dir, maxSamples), free: -1,
	}
	var errs [3]error
	f.checkpoints, errs[0] = checkpoint.List(filepath.Join(dir, "checkpoints"))
	f.timing, errs[1] = run.LastTiming(dir)
	f.exit, errs[2] = run.LastExit(dir)
	f.fault = errors.Join(errs[:]...)
	if free, err := machine.FreeDisk(dir); err == nil {
		f.free = free
	}
	return f
}
