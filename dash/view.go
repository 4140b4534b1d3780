package dash

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"anneal/internal/shellword"
	"anneal/internal/units"
	"anneal/run"
	"anneal/train"
)

// A View holds the data of all runs except their curves.
type View struct {
	Watch string    `json:"watch"` // identifies the Watch: the same for all its views
	Time  time.Time `json:"time"`
	Runs  []RunView `json:"runs"`
}

// A RunView holds the data of a run. Unknown numbers are NaN, in JSON null.
type RunView struct {
	Name  string       `json:"name"` // the shortest that differs from the others
	Dir   string       `json:"dir"`
	State run.RunState `json:"state"`
	Error string       `json:"error,omitempty"` // why the run, or a file of it, cannot be read
	Model string       `json:"model"`

	Step       int          `json:"step"`
	Steps      int          `json:"steps"` // planned; 0 for weights alone
	Tokens     train.Number `json:"tokens"`
	Seconds    train.Number `json:"seconds"` // of training so far
	FLOPs      train.Number `json:"flops"`   // so far
	ETASeconds train.Number `json:"eta_seconds"`
	Parameters int64        `json:"parameters"`
	Bytes      int64        `json:"bytes"` // on disk
	Changed    time.Time    `json:"changed"`

	Loss           train.Number `json:"loss"`              // nats per token, over the last batches
	ValLoss        train.Number `json:"val_loss"`          // nats per token
	ValBitsPerByte train.Number `json:"val_bits_per_byte"` // of the last evaluation
	ValStep        int          `json:"val_step"`
	GradNorm       train.Number `json:"grad_norm"`
	LR             train.Number `json:"lr"`
	Rate           train.Number `json:"tokens_per_second"`
	PeakShare      train.Number `json:"fraction_of_peak"`
	RSS            train.Number `json:"rss_bytes"`

	Phases map[string]train.Number `json:"phase_seconds"` // of a step, of late

	Lines    int          `json:"lines"`     // of metrics.jsonl
	BadLines int          `json:"bad_lines"` // that cannot be read
	Rewound  int          `json:"rewound"`   // steps that rewinds removed from the run
	Read     train.Number `json:"read"`      // share of metrics.jsonl that has been read

	Alerts      []Alert           `json:"alerts"`
	Journal     []run.JournalLine `json:"journal"`
	Checkpoints []Saved           `json:"checkpoints"`
	Ranks       []run.Whereabouts `json:"ranks"`
	Samples     []run.Samples     `json:"samples"` // what the model wrote, oldest first
	Timing      *run.Timing       `json:"timing"`
	Exit        *run.Exit         `json:"exit"`
	Config      string            `json:"config"`
	Differences []Difference      `json:"differences"` // from the first run
}

// Saved is a checkpoint with the command that continues from it.
type Saved struct {
	Step    int64  `json:"step"`
	Tokens  int64  `json:"tokens"`
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error,omitempty"` // why it cannot be used
	Command string `json:"command"`
}

// A Difference is a key whose value differs from that in the first run.
type Difference struct {
	Key   string `json:"key"`
	First string `json:"first"`
	Here  string `json:"here"`
}

// View returns the current data.
func (w *Watch) View(now time.Time) View {
	v := View{Watch: w.id, Time: now.UTC().Truncate(time.Millisecond), Runs: make([]RunView, len(w.runs))}
	first := w.runs[0].config()
	for i, r := range w.runs {
		v.Runs[i] = r.view(now)
		v.Runs[i].Name = w.name(i)
		for _, d := range r.config().Differences(first) {
			v.Runs[i].Differences = append(v.Runs[i].Differences, Difference{d.Key, d.Was, d.Now})
		}
	}
	return v
}

// name returns the last part of a run's path, or the whole path if another run has the same name.
func (w *Watch) name(i int) string {
	name := filepath.Base(w.runs[i].dir)
	for k, r := range w.runs {
		if k != i && filepath.Base(r.dir) == name {
			return w.runs[i].dir
		}
	}
	if name == "." {
		if full, err := filepath.Abs(name); err == nil {
			return filepath.Base(full)
		}
	}
	return name
}

func (r *watched) view(now time.Time) RunView {
	r.mu.Lock()
	f, fault, cfg := r.facts, r.fault, r.cfg
	r.mu.Unlock()
	s := f.summary
	m := cfg.Model
	v := RunView{
		Dir: r.dir, State: s.State, Step: s.Step, Steps: s.Steps, Parameters: s.Parameters, Bytes: s.Bytes,
		Changed: s.Changed, Loss: train.Number(s.TrainLoss), ValLoss: train.Number(s.ValLoss),
		ValBitsPerByte: train.Number(s.ValBitsPerByte), ValStep: s.ValStep,
		Model:   fmt.Sprintf("%s %d × %d", m.Family, m.Layers, m.Dim),
		Journal: f.journal[max(0, len(f.journal)-journalLines):], Ranks: f.ranks, Samples: f.samples,
		Timing: f.timing, Exit: f.exit,
		Config: string(cfg.Shown().YAML()),
	}
	if err := errors.Join(s.Err, f.fault, fault); err != nil {
		v.Error = err.Error()
	}
	for i, e := range f.checkpoints {
		saved := Saved{Step: e.Step, Tokens: e.Tokens, Bytes: e.Bytes, Command: r.continuing(i == 0, e.Step, s.State)}
		if e.Err != nil {
			saved.Error, saved.Command = e.Err.Error(), ""
		}
		v.Checkpoints = append(v.Checkpoints, saved)
	}
	r.points.view(&v, r.timeLeft(f.journal, now), now)
	if text := f.fullDisk(); text != "" && v.State == run.Running {
		v.Alerts = append(v.Alerts, Alert{"disk", v.Step, text})
	}
	v.Alerts = append(v.Alerts, journalAlerts(f.journal)...)
	return v
}

// timeLeft returns the seconds until train.minutes have passed since the run was last started; infinite if
// train.minutes is not set.
func (r *watched) timeLeft(lines []run.JournalLine, now time.Time) float64 {
	limit := r.config().Train.Minutes
	if limit <= 0 {
		return math.Inf(1)
	}
	started := now
	for _, l := range lines {
		if l.Event == "started" {
			started = l.Time
		}
	}
	return max(0, 60*limit-now.Sub(started).Seconds())
}

// view adds the data of the metrics. The run stops after limit seconds at the latest.
func (f *follower) view(v *RunView, limit float64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	unknown := train.Number(math.NaN())
	v.Tokens, v.Seconds, v.FLOPs, v.ETASeconds = unknown, unknown, unknown, unknown
	if f.end.step > 0 {
		v.Step = f.end.step
		v.Tokens, v.Seconds = train.Number(f.end.tokens), train.Number(f.end.seconds)
		v.FLOPs = train.Number(f.end.flops)
	}
	newest := func(name string) train.Number {
		x, _ := f.table.newest(name)
		return train.Number(x)
	}
	if x := newest("loss"); x == x {
		v.Loss = x
	}
	if f.val.step > v.ValStep {
		v.ValLoss, v.ValBitsPerByte, v.ValStep = train.Number(f.val.valLoss), train.Number(f.val.valBits), f.val.step
	}
	v.GradNorm, v.LR, v.Rate = newest("grad_norm"), newest("lr"), newest("tokens_per_second")
	v.Phases = map[string]train.Number{}
	for p := range train.Phases {
		if x := newest("phase_seconds." + p.String()); x == x {
			v.Phases[p.String()] = x
		}
	}
	v.PeakShare, v.RSS = newest("fraction_of_peak"), newest("rss_bytes")
	v.Lines, v.BadLines, v.Rewound, v.Read = f.lines, f.bad, f.rewound, 1
	if f.size > 0 {
		v.Read = train.Number(float64(f.read) / float64(f.size))
	}
	if v.State == run.Running && f.recent > 0 {
		v.ETASeconds = train.Number(min(limit, f.recent*float64(max(0, v.Steps-v.Step))))
	}
	v.Alerts = f.alerts.alerts()
	if v.State == run.Running && f.recent > 0 {
		if quiet := now.Sub(f.changed); quiet > max(time.Minute, time.Duration(10*f.recent*float64(time.Second))) {
			v.Alerts = append(v.Alerts, Alert{"stall", v.Step, fmt.Sprintf(
				"no step has ended for %v; a step takes %.2g s", quiet.Round(time.Second), f.recent)})
		}
	}
	if f.bad > 0 {
		v.Alerts = append(v.Alerts, Alert{"lines", v.Step, fmt.Sprintf(
			"lines of metrics.jsonl that cannot be read are left out: %d", f.bad)})
	}
	if f.table.dropped {
		v.Alerts = append(v.Alerts, Alert{"lines", v.Step, fmt.Sprintf(
			"metrics.jsonl has more than %d different numbers; the others are not shown", maxColumns)})
	}
}

// continuing returns the command that continues from a checkpoint; a resume continues from the newest.
func (r *watched) continuing(newest bool, step int64, state run.RunState) string {
	at := fmt.Sprint(step)
	switch {
	case newest && state == run.Diverged:
		return shellword.Command("anneal", "rewind", r.dir, "--to", at)
	case newest && (state == run.Imported || state == run.Derived || state == run.Finished):
		return shellword.Command("anneal", "generate", r.dir)
	case newest:
		return shellword.Command("anneal", "resume", r.dir)
	}
	return shellword.Command("anneal", "branch", r.dir, "--at", at, "--out", r.dir+"-from-"+at)
}

// fullDisk says that the next checkpoint may not fit on the disk; "" if it does.
func (f *facts) fullDisk() string {
	if f.free < 0 || len(f.checkpoints) == 0 || f.free > 2*f.checkpoints[0].Bytes {
		return ""
	}
	return fmt.Sprintf("the disk has %s left, and a checkpoint takes %s",
		units.FormatBytes(f.free), units.FormatBytes(f.checkpoints[0].Bytes))
}

// journalAlerts returns what went wrong since the run was last started, newest last. A divergence after which the run
// went on by itself is told by its "rewound".
func journalAlerts(lines []run.JournalLine) (list []Alert) {
	for _, l := range lines {
		switch l.Event {
		case "started":
			list = nil
		case "continued":
			list = slices.DeleteFunc(list, func(a Alert) bool { return a.Kind == "diverged" })
		case "warning", "failed", "diverged", "rewound":
			list = append(list, Alert{l.Event, l.Step, l.Text})
		}
	}
	return list
}
