package config

import (
	"fmt"
	"math"
	"strings"
)

// Branches are the ends of the decays of a wsds schedule or of the cycles of restarts and cyclic, but for the last,
// which is the end of the run, or where step falls. The text form is a comma-separated list of amounts.
type Branches struct {
	written
	ends []amount
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Branches) UnmarshalText(text []byte) error {
	read := Branches{written: written(text)}
	for part := range strings.SplitSeq(string(text), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		a, err := parseAmount(part)
		if err != nil {
			return err
		}
		read.ends = append(read.ends, a)
	}
	*b = read
	return nil
}

// Branches returns the steps of schedule.branches and the end of the run.
func (c *Config) Branches() []int {
	var ends []int
	for _, a := range c.Schedule.Branches.ends {
		ends = append(ends, c.steps(a))
	}
	return append(ends, c.Train.Steps)
}

// The rules of what is derived.
const (
	finalRatioRule = "final_ratio = 0.1 in cosine, inverse_sqrt, step and cyclic, else 0"
	branchesRule   = "branches = 25%, 50% in wsds, 14%, 43% in restarts, 25%, 50%, 75% in cyclic, 80%, 90% in step"
)

// usualBranches are those of the schedules that have some.
var usualBranches = map[string]string{
	"wsds": "25%, 50%", "restarts": "14%, 43%", "cyclic": "25%, 50%, 75%", "step": "80%, 90%",
}

// resolveSchedule fills what was left out, and turns lengths into steps.
func (c *Config) resolveSchedule() {
	c.resolveAmounts()
	const warmup = "schedule.warmup"
	if from, given := c.origins[warmup]; given && c.Schedule.Warmup == 0 { // who asks for none means none
		c.Derive(warmup, 1, "no warmup")
		from.Rule = c.origins[warmup].Rule
		c.origins[warmup] = from
	}
	c.derive(warmup, min(max(c.Train.Steps/100, 1), 2000))
	ratio := 0.0
	switch c.Schedule.Name {
	case "cosine", "inverse_sqrt", "step", "cyclic":
		ratio = 0.1
	}
	c.deriveNumber("schedule.final_ratio", ratio, finalRatioRule)
	if usual := usualBranches[c.Schedule.Name]; usual != "" && !c.Schedule.Branches.Given() {
		c.set(allKeys[keyIndex["schedule.branches"]], usual, Origin{Rule: branchesRule}) // it is never wrong
	}
}

// Position returns where in its schedule a run is after so many steps: in steps, or in tokens if the batch grows.
func (c *Config) Position() func(steps int) int {
	if ramp, err := c.BatchRamp(); err == nil && ramp.Stages != nil {
		return ramp.Tokens
	}
	return func(steps int) int { return steps }
}

// schedule checks the learning rate over the run.
func (k *checker) schedule() {
	s, steps := &k.c.Schedule, k.c.Train.Steps
	if k.between("schedule.warmup", s.Warmup, 1, 1<<40) && s.Warmup > steps && steps > 0 {
		k.fault("schedule.warmup", fmt.Sprintf("schedule.warmup = %d", max(steps/100, 1)),
			"schedule.warmup = %d is longer than the run, train.steps = %d", s.Warmup, steps)
	}
	k.number("schedule.final_ratio", s.FinalRatio, 0, 1, "[]")
	k.number("schedule.decay_fraction", s.DecayFraction, 0, 1, "(]")
	k.branches()
	if s.Name == "step" && s.FinalRatio == 0 {
		k.fault("schedule.final_ratio", "schedule.final_ratio = 0.1",
			"schedule.final_ratio = 0 with schedule.name = step: the first fall would end training")
	}
}

func (k *checker) branches() {
	const key = "schedule.branches"
	s := &k.c.Schedule
	if usualBranches[s.Name] == "" {
		return
	}
	ends := k.c.Branches()
	position := k.c.Position()
	before := position(s.Warmup)
	for i, end := range ends {
		at := position(end)
		switch begin := at - int(math.Round(s.DecayFraction*float64(at))); {
		case s.Name != "wsds" && at <= before:
			k.fault(key, "steps of the run in ascending order, after the warmup",
				"%s: step %d is not between step %d and the end of the run, train.steps = %d", key, end,
				append([]int{s.Warmup}, ends...)[i], k.c.Train.Steps)
			return
		case s.Name != "wsds" && end <= k.c.Train.Steps:
		case end > k.c.Train.Steps:
			k.fault(key, "branches that end within the run",
				"%s: the branch that ends at step %d lies beyond train.steps = %d", key, end, k.c.Train.Steps)
			return
		case begin < before:
			k.fault(key, "branches further apart, or a smaller schedule.decay_fraction",
				"%s: the branch that ends at step %d begins to decay before the warmup or the branch before it ends",
				key, end)
			return
		}
		before = at
	}
}
