package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
)

// printTime prints how long a run will take, or why that is not known.
func printTime(s *session, p *plan.Foresight) {
	t := p.Time
	if t == nil && p.Untimed == "" {
		return
	}
	if t == nil {
		for i, line := range strings.Split(p.Untimed, "\n") {
			s.prosef("#   ", "# %s%s\n", map[bool]string{true: "", false: "  "}[i == 0], strings.TrimSpace(line))
		}
		return
	}
	peak := ""
	if t.MFU > 0 {
		peak = fmt.Sprintf(", %.0f %% of peak", 100*t.MFU)
	}
	s.prosef("#   ", "# time: %s a step (%s), %s tok/s%s; %s for all steps and evaluations\n",
		spell(t.Step), phasesOf(func(p train.Phase) float64 { return t.Phases[p.String()] }),
		units.Commas(int64(t.TokensPerSecond)), peak, clock(asDuration(t.Seconds)))
}

// phasesOf lists the phases of a step that take at least a hundredth of it.
func phasesOf(seconds func(train.Phase) float64) string {
	total := 0.0
	for p := range train.Phases {
		total += seconds(p)
	}
	var list []string
	for p := range train.Phases {
		if x := seconds(p); x >= total/100 {
			list = append(list, fmt.Sprintf("%v %.0f %%", p, 100*x/total))
		}
	}
	return strings.Join(list, ", ")
}

// spell writes seconds with the unit that suits them.
func spell(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return seconds(asDuration(s))
}

func asDuration(s float64) time.Duration {
	return time.Duration(min(s, math.MaxInt64/2e9) * float64(time.Second))
}

// timingFacts compares the time of a step with its prediction.
func timingFacts(t run.Timing) (list []string) {
	if t.Steps == 0 {
		return nil
	}
	against := func(c run.Compared) string {
		if math.IsNaN(float64(c.Predicted)) {
			return ""
		}
		return fmt.Sprintf(" (predicted %s, %+.0f %%)", spell(float64(c.Predicted)), 100*c.Off())
	}
	list = append(list, spell(float64(t.Step.Actual))+against(t.Step))
	var parts []string
	for p := range train.Phases {
		c := t.Phases[p.String()]
		if c.Actual < t.Step.Actual/100 {
			continue
		}
		part := fmt.Sprintf("%v %s", p, spell(float64(c.Actual)))
		if c.Predicted > 0 {
			part += fmt.Sprintf(" (%s)", spell(float64(c.Predicted)))
		}
		parts = append(parts, part)
	}
	return append(list, strings.Join(parts, ", "))
}
