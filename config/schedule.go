package config

import (
	"fmt"
	"math"
	"strings"
)

// Branches are the ends of the decays of a wsds schedule, but for the last, which is the end of the run. The text form
// is a comma-separated list of amounts.
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

// Branches returns the steps at which the branches of a wsds schedule end; the last is the end of the run.
func (c *Config) Branches() []int {
	var ends []int
	for _, a := range c.Schedule.Branches.ends {
		ends = append(ends, c.steps(a))
	}
	return append(ends, c.Train.Steps)
}

// The rules of what is derived.
const (
	finalRatioRule = "final_ratio = 0.1 in cosine and inverse_sqrt, else 0"
	branchesRule   = "branches = 25%, 50% in wsds"
)

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
	if c.Schedule.Name == "cosine" || c.Schedule.Name == "inverse_sqrt" {
		ratio = 0.1
	}
	c.deriveNumber("schedule.final_ratio", ratio, finalRatioRule)
	if c.Schedule.Name == "wsds" && !c.Schedule.Branches.Given() {
		c.set(allKeys[keyIndex["schedule.branches"]], "25%, 50%", Origin{Rule: branchesRule}) // it is never wrong
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
}

func (k *checker) branches() {
	const key = "schedule.branches"
	s := &k.c.Schedule
	if s.Name != "wsds" {
		return
	}
	ends := k.c.Branches()
	position := k.c.Position()
	before := position(s.Warmup)
	for _, end := range ends {
		at := position(end)
		switch begin := at - int(math.Round(s.DecayFraction*float64(at))); {
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
