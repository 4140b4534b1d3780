package sinks

import (
	"math"
	"sync"
	"time"

	"anneal/config"
	"anneal/train"
)

// A Step holds the data of one step of a run.
type Step struct {
	train.Event
	Took   time.Duration               // wall time of the step
	Phases [train.Phases]time.Duration // time by phase; zero if it was not measured

	due bool // sinks that keep a history take it
}

// An Alert is an event that may need attention at once.
type Alert struct {
	Kind string // nan, spike, stall, warning, ended, stopped, failed, diverged, continued
	Step int
	Text string
}

// Level returns how bad an alert is: info, warn or error.
func (a Alert) Level() string {
	switch a.Kind {
	case "ended", "stopped", "continued":
		return "info"
	case "failed", "diverged":
		return "error"
	}
	return "warn"
}

// A sink takes the reports of a run. Its methods are called one at a time and return at once.
type sink interface {
	step(s Step)
	alert(a Alert)
	saved(now time.Time, err error)
	close()
}

// Options of the sinks of a run.
type Options struct {
	Log        config.Log
	Dir        string            // of the run; TensorBoard's files go to its directory tensorboard
	Name, ID   string            // of the run: the base of its directory, and its id
	Step       int               // the run's current step; sinks must discard later steps that they have
	Tokens     int64             // trained on so far
	Config     string            // the text of the resolved configuration
	Values     map[string]string // its values, by key
	Family     string
	Parameters int64
	Memory     map[string]int64 // bytes that the run holds, by purpose
	Checkpoint int64            // bytes of a checkpoint's tensors
	Begun      time.Time        // when this process began the run
	Restarts   int              // earlier processes that trained the run
	Reached    int              // the last step of these processes: steps up to it are made again
	Kept       *Kept            // of this process, if it may take the run back; nil for a new one
	Warn       func(string)     // receives the faults of sinks; called from any goroutine
}

// Sinks are all sinks of a run. A nil *Sinks takes everything and does nothing.
type Sinks struct {
	mu    sync.Mutex
	list  []sink
	every int
	last  map[string]time.Time // when an alert of a kind was last passed on
	text  string               // of the last alert
}

// Open opens the sinks that the configuration names. An error names the key of the sink that cannot be opened.
func Open(o Options) (*Sinks, error) {
	s := &Sinks{every: o.Log.Every, last: map[string]time.Time{}}
	for _, open := range []struct {
		wanted bool
		open   func(Options) (sink, error)
	}{
		{o.Log.Sinks.Has(config.TensorBoard), openTensorBoard},
		{o.Log.Sinks.Has(config.Prometheus), openPrometheus},
		{o.Log.Sinks.Has(config.Trackio), openTrackio},
		{o.Log.Webhook != "", openWebhook},
	} {
		if !open.wanted {
			continue
		}
		opened, err := open.open(o)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.list = append(s.list, opened)
	}
	return s, nil
}

// Step takes a step. Sinks that keep a history leave it out unless its number is a multiple of log.every, it has an
// evaluation, or it is the last.
func (s *Sinks) Step(x Step) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.due = x.Step%s.every == 0 || x.Evaluated() || x.Step == x.Steps
	for _, to := range s.list {
		to.step(x)
	}
	if kind := skipKind(x.Event); kind == "nan" || kind == "spike" {
		s.tell(Alert{kind, x.Step, skipText[kind]})
	}
}

// An evaluator is a sink that also takes evaluations without their steps.
type evaluator interface {
	evaluated(step int, e train.Evaluation)
}

// Evaluated takes an evaluation after a step that an earlier process has made.
func (s *Sinks) Evaluated(step int, e train.Evaluation) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.list {
		if x, ok := to.(evaluator); ok {
			x.evaluated(step, e)
		}
	}
}

// Alert takes an alert.
func (s *Sinks) Alert(a Alert) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(a)
}

// quiet is the time after an alert in which others of its kind are left out: a run that skips every update must not
// send one for each.
const quiet = time.Minute

// tell passes an alert on to the sinks. The caller holds the lock.
func (s *Sinks) tell(a Alert) {
	now := time.Now()
	if last, told := s.last[a.Kind]; told && now.Sub(last) < quiet && a.Kind != "warning" {
		return
	}
	if a.Kind == "warning" && a.Text == s.text { // already reported under a kind of its own
		return
	}
	s.last[a.Kind], s.text = now, a.Text
	for _, to := range s.list {
		to.alert(a)
	}
}

// Saved takes the outcome of a checkpoint.
func (s *Sinks) Saved(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.list {
		to.saved(time.Now(), err)
	}
}

// A Text is what the model wrote after a prompt.
type Text struct{ Prompt, Text string }

// A reader is a sink that also takes texts.
type reader interface{ wrote(step int, texts []Text) }

// Wrote takes the texts that the model wrote after a step, one for each prompt of the run.
func (s *Sinks) Wrote(step int, texts []Text) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.list {
		if r, ok := to.(reader); ok {
			r.wrote(step, texts)
		}
	}
}

// Close writes the remaining output, as far as sinks take it within a few seconds.
func (s *Sinks) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sync.WaitGroup
	for _, to := range s.list {
		all.Go(to.close)
	}
	all.Wait()
	s.list = nil
}

// skipKind returns why the update of a step was not applied: nan, spike, overflow (of fp16, which is usual) or empty;
// "" if it was applied.
func skipKind(e train.Event) string {
	bad := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	switch {
	case !e.Skipped:
		return ""
	case e.Targets == 0:
		return "empty"
	case e.LossScale > 0 && bad(e.GradNorm) && !bad(e.Loss):
		return "overflow"
	case bad(e.Loss) || bad(e.GradNorm):
		return "nan"
	}
	return "spike"
}

var skipText = map[string]string{
	"nan":   "an update was skipped: its loss or gradient is NaN or infinite",
	"spike": "an update was skipped: its loss or gradient norm is far above those before (guard.spike_z)",
}

// keyError is an error of a sink with the configuration key that caused it.
func keyError(key, try string, err error) error {
	return config.Problem{Key: key, Message: key + ": " + err.Error(), Try: try}
}
