package run

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"anneal/internal/buildinfo"
	"anneal/internal/machine"
	"anneal/train"
)

// The watchdog notices when a part of a step takes far longer than it ever has: a disk or a device that does not
// answer, or a deadlock. It writes the stacks of all goroutines and the state of the run into the run's directory
// and says so once; with watchdog.exit it ends the process, so that a supervisor can start it again.

// ExitStalled is the exit code of a process that watchdog.exit ended.
const ExitStalled = 8

// section is a part of a run with its own deadline.
type section int

const (
	idle section = iota // between the others; it has no deadline
	readingData
	computing
	updating
	evaluating
	savingState
	sections
)

var sectionOf = map[train.Phase]section{
	train.Reading: readingData, train.Forward: computing, train.Head: computing, train.Backward: computing,
	train.Summing: computing, train.Updating: updating,
}

func (s section) String() string {
	return [sections]string{
		"nothing", "reading data", "the forward and backward pass", "the update", "the evaluation", "saving",
	}[s]
}

// watchLimits decide when a section takes too long.
type watchLimits struct {
	factor time.Duration // limit as a multiple of the slowest so far
	least  time.Duration // but at least this
	first  time.Duration // limit before there is a slowest
	tick   time.Duration // between looks
}

var defaultLimits = watchLimits{factor: 10, least: time.Minute, first: time.Hour, tick: time.Second}

// mostStalls bounds the reports of one process.
const mostStalls = 10

// stall is a section that takes too long.
type stall struct {
	section                 section
	elapsed, slowest, limit time.Duration
}

// watchdog holds the time limit of the current section. A nil watchdog watches nothing.
type watchdog struct {
	limits watchLimits
	report func(stall)
	done   chan struct{}

	mu      sync.Mutex
	section section
	since   time.Time
	told    bool // the current section was reported
	stalls  int
	slowest [sections]time.Duration // slowest unreported time of each section
	seen    time.Time               // when the watchdog last knew that the process ran; zero at first
}

// newWatchdog starts a watchdog, which calls report from a goroutine of its own. The caller closes it.
func newWatchdog(l watchLimits, report func(stall)) *watchdog {
	w := &watchdog{limits: l, report: report, done: make(chan struct{})}
	go w.run()
	return w
}

func (w *watchdog) close() {
	if w != nil {
		close(w.done)
	}
}

// enter ends the current section and begins another.
func (w *watchdog) enter(s section) {
	if w == nil {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if stopped := w.stopped(now); !w.told {
		w.slowest[w.section] = max(w.slowest[w.section], now.Sub(w.since)-stopped)
	}
	w.section, w.since, w.told = s, now, false
}

// run looks at the current section until the watchdog is closed.
func (w *watchdog) run() {
	ticker := time.NewTicker(w.limits.tick)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		if s, late := w.look(time.Now()); late {
			w.report(s)
		}
	}
}

// stopped returns for how long the process did not run since the last call, because of SIGSTOP, a debugger or the sleep
// of the machine: calls are at most a tick apart while it runs.
func (w *watchdog) stopped(now time.Time) time.Duration {
	before := w.seen
	if w.seen = now; before.IsZero() {
		return 0
	}
	return max(now.Sub(before)-2*w.limits.tick, 0)
}

// look returns the current section if it takes too long and was not reported. Time during which the process was
// stopped does not count.
func (w *watchdog) look(now time.Time) (stall, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = w.since.Add(w.stopped(now))
	s := stall{w.section, now.Sub(w.since), w.slowest[w.section], w.limits.first}
	if s.slowest > 0 {
		s.limit = max(w.limits.least, w.limits.factor*s.slowest)
	}
	if s.section == idle || w.told || s.elapsed <= s.limit || w.stalls >= mostStalls {
		return stall{}, false
	}
	w.told = true
	w.stalls++
	return s, true
}

// startWatchdog watches the session, if the configuration says so.
func (s *session) startWatchdog() {
	if s.cfg.Watchdog.Enabled {
		s.watch = newWatchdog(defaultLimits, s.stalled)
	}
}

// enter records that a phase of a step begins.
func (s *session) enter(p train.Phase) {
	if p == train.Reading || sectionOf[p] != sectionOf[s.phases.in] {
		s.watch.enter(sectionOf[p])
	}
	s.phases.enter(p)
}

// stalled reports a stall, and ends the process if it should.
func (s *session) stalled(x stall) {
	slowest := "and none was completed before"
	if x.slowest > 0 {
		slowest = fmt.Sprintf("far more than the slowest so far, %v", x.slowest.Round(time.Millisecond))
	}
	text := fmt.Sprintf("%s of step %d has taken %v, %s: something does not answer\n  stacks and state are in %s",
		x.section, s.journal.step.Load()+1, x.elapsed.Round(time.Second), slowest, s.writeStall(x))
	s.alert("stall", text)
	s.Warn(text)
	if s.cfg.Watchdog.Exit {
		time.Sleep(time.Second) // for the warning
		s.exit(ExitStalled)
	}
}

// writeStall writes stacks and state and returns the name of the file. It does not wait for a disk that does not
// answer.
func (s *session) writeStall(x stall) string {
	type written struct {
		path string
		err  error
	}
	text := s.describeStall(x)
	done := make(chan written, 1)
	go func() {
		path, err := WriteCrash(s.Dir, "stall", text)
		done <- written{path, err}
	}()
	select {
	case w := <-done:
		if w.err != nil {
			return fmt.Sprintf("no file: %v", w.err)
		}
		return w.path
	case <-time.After(10 * time.Second):
		return "no file: the disk of " + s.dir.crash() + " does not answer"
	}
}

// describeStall returns the state of the run and the stacks of all goroutines.
func (s *session) describeStall(x stall) []byte {
	var b strings.Builder
	rss, peak := machine.Resident()
	fmt.Fprintf(&b, "anneal %s, %s/%s, pid %d\n", buildinfo.String(), runtime.GOOS, runtime.GOARCH, os.Getpid())
	fmt.Fprintf(&b, "%s of step %d of %d: %v so far; the slowest took %v, the limit is %v\n",
		x.section, s.journal.step.Load()+1, s.cfg.Train.Steps, x.elapsed, x.slowest, x.limit)
	fmt.Fprintf(&b, "device %s, %d threads; resident memory %d bytes, at most %d; %d goroutines\n\n",
		s.cfg.Device, s.cfg.Threads, rss, peak, runtime.NumGoroutine())
	stacks := make([]byte, 16<<20)
	return append([]byte(b.String()), stacks[:runtime.Stack(stacks, true)]...)
}
