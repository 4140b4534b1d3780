package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"anneal/config"
	"anneal/internal/buildinfo"
	"anneal/internal/units"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
)

// header prints what is about to run and its plan, and returns the plan for comparison. threads are those of the
// command, 0 for those of the config.
func (s *session) header(cfg *config.Config, threads int) (*plan.Foresight, error) {
	if s.world.Size() == 1 {
		if err := run.CheckRanks(cfg, threads); err != nil {
			return nil, err
		}
	}
	plan, err := plan.Foresee(cfg)
	if err != nil {
		return nil, err
	}
	if plan.Absent != nil {
		return nil, plan.Absent
	}
	s.planRanks(plan)
	active := ""
	if plan.Active != plan.Parameters {
		active = fmt.Sprintf(" (%.1fM active)", float64(plan.Active)/1e6)
	}
	planned := ""
	if t := plan.Time; t != nil {
		planned = clock(asDuration(t.Seconds)) + ", "
	}
	ranks := ""
	if n := cfg.Parallel.Ranks; n > 1 {
		ranks = fmt.Sprintf(" · %v", cfg.Parallel)
	}
	s.notef("anneal %s  %s %.1fM params%s · %s (%s)%s · %s tokens/step · plan: %s%s", buildinfo.Version,
		cfg.Model.Family, float64(plan.Parameters)/1e6, active, strings.ToUpper(cfg.Precision), plan.Device, ranks,
		stepTokens(cfg), planned, memorySize(plan.Bytes))
	if plan.Mix != nil {
		for _, line := range mixTable(plan.Mix) {
			s.notef("  %s", line)
		}
	}
	if text := initialWeights(cfg); text != "" {
		s.notef("%s", text)
	}
	for _, remark := range plan.Remarks() {
		s.notef("%s", remark)
	}
	if cfg.Device == "cpu" {
		s.noteKernels()
	}
	return plan, nil
}

// trainOptions returns the options that train, resume and branch have in common. It must be called before
// whileTraining.
func (s *session) trainOptions(dir string, cfg *config.Config) run.Options {
	s.wait(cfg)
	s.run.Store(dir)
	s.saves = make(chan struct{}, 1)
	return run.Options{
		Dir: dir, OnProgress: s.trainProgress(cfg.Train.LogEvery), Warn: s.warn,
		Note: func(text string) { s.notef("%s", text) }, Notes: s.notes, Saves: s.saves,
		World: s.world, ExitCode: exitCode,
		Begun: func(gone func() error) {
			s.gone.Store(gone)
			s.begun.Store(true)
		},
	}
}

// initialWeights describes the weights that a run starts or started from; "" if they are random.
func initialWeights(cfg *config.Config) string {
	i := cfg.Init
	if i.From == "" {
		return ""
	}
	text := "initial weights: " + fromHere(i.From)
	if i.Step > 0 {
		text += fmt.Sprintf(", step %s", units.Commas(i.Step))
	}
	if i.Weights != "" {
		text += fmt.Sprintf(" (%.16s…)", i.Weights)
	}
	return text
}

// stepTokens writes the tokens of a step, or the range if steps grow.
func stepTokens(cfg *config.Config) string {
	full := units.Commas(cfg.Train.BatchTokens)
	if ramp, err := cfg.BatchRamp(); err == nil && ramp.Batch(0) != ramp.Full {
		return units.Commas(ramp.Batch(0)) + " to " + full
	}
	return full
}

// trainProgress returns a function that shows a run's steps. Lines with an evaluation stay on the screen. On a
// terminal the line of the current step is rewritten; elsewhere a line appears every so many steps, or every ten
// seconds if every is 0.
func (s *session) trainProgress(every int) func(train.Event) {
	return func(p train.Event) {
		line := func(columns int) string { return stepLine(p, columns) }
		switch {
		case p.Evaluated(), p.Tasks != nil:
			s.status.keep(line(s.status.terminal()))
		case every > 0 && p.Step%every == 0 && !s.status.rewrites():
			s.status.keep(line(0))
		default:
			s.status.update(line)
		}
	}
}

// stepLine writes a step for people, such as
//
//	step  840/2400   35%  loss 1.947  val 1.310 bits/byte  lr 9.1e-04  |g| 0.62  7,940 tok/s  71% of peak  ETA 2m03s
//
// If columns are too few (0 is no limit), the least important parts are left out.
func stepLine(p train.Event, columns int) string {
	total := fmt.Sprint(p.Steps)
	line := fit{columns: columns}
	line.add(0, "step %*d/%s  %3d%%", len(total), p.Step, total, 100*p.Step/max(p.Steps, 1))
	line.add(0, "loss %.3f", p.Loss)
	if !math.IsNaN(p.ValBitsPerByte) {
		line.add(1, "val %.3f bits/byte", p.ValBitsPerByte)
	}
	if !math.IsNaN(p.ValAccuracy) {
		line.add(1, "right %.1f%% (training %.1f%%)", 100*p.ValAccuracy, 100*p.TrainAccuracy)
	}
	if len(p.ValSources) > 0 {
		parts := make([]string, len(p.ValSources))
		for i, x := range p.ValSources {
			parts[i] = fmt.Sprintf("%s %.3f", x.Name, x.BitsPerByte)
		}
		line.add(3, "(%s)", strings.Join(parts, ", "))
	}
	for _, task := range slices.Sorted(maps.Keys(p.Tasks)) {
		line.add(3, "%s %s", task, firstFigure(p.Tasks[task]))
	}
	if p.ValBitsPerByteEMA > 0 {
		line.add(1, "ema %.3f", p.ValBitsPerByteEMA)
	}
	if p.DomainWeights != nil {
		line.add(1, "weights %s", units.List("%.2f", p.DomainWeights))
	}
	line.add(4, "lr %.1e", p.LR)
	line.add(4, "|g| %.2f", p.GradNorm)
	if p.ClipRateRecent > 0 {
		line.add(5, "%.0f%% clipped", 100*p.ClipRateRecent)
	}
	if !math.IsNaN(p.TokensPerSecond) {
		line.add(2, "%s tok/s", units.Commas(int64(p.TokensPerSecond)))
	}
	if p.FractionOfPeak > 0 {
		line.add(3, "%.0f%% of peak", 100*p.FractionOfPeak)
	}
	if p.Skips > 0 {
		line.add(1, "%d skipped", p.Skips)
	}
	if p.ETA > 0 && p.ETA < 10000*time.Hour {
		line.add(0, "ETA %s", clock(p.ETA))
	}
	return line.String()
}

// firstFigure returns the main figure of a task: its accuracy, if it has one.
func firstFigure(figures map[string]train.Number) string {
	name := "acc"
	if _, ok := figures[name]; !ok {
		name = slices.Min(slices.Collect(maps.Keys(figures)))
	}
	return name + " " + figure(float64(figures[name]))
}

// fit is a line made of parts. If it is too long, the parts of the highest rank are dropped first.
type fit struct {
	columns int
	parts   []string
	ranks   []int
}

func (f *fit) add(rank int, format string, args ...any) {
	f.parts, f.ranks = append(f.parts, fmt.Sprintf(format, args...)), append(f.ranks, rank)
}

func (f *fit) String() string {
	line := strings.Join(f.parts, "  ")
	for f.columns > 0 && utf8.RuneCountInString(line) >= f.columns {
		worst := slices.Max(f.ranks)
		if worst == 0 {
			break
		}
		i := slices.Index(f.ranks, worst)
		f.parts, f.ranks = slices.Delete(f.parts, i, i+1), slices.Delete(f.ranks, i, i+1)
		line = strings.Join(f.parts, "  ")
	}
	return line
}

func (s *session) warn(text string) { s.sayf("warning: %s", text) }
