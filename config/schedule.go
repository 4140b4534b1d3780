package config

import (
	"fmt"
	"math"
	"strings"
)

// Branches are the ends of the decays of a wsds schedule, or of the cycles of restarts and cyclic, or the positions at
// which step drops. The last end is that of the run and is not listed. The text form is a comma-separated list of
// amounts.
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

// The rules of derived values.
const (
	finalRatioRule = "final_ratio = 0.1 in cosine, inverse_sqrt, step and cyclic, and with decay_shape = " +
		"exponential; 4e-6 in one_cycle; else 0"
	warmupRule = "warmup = 1 % of the steps, at least 1 and at most 2000; 30 % in one_cycle; in power 100 steps, " +
		"which do not depend on the length, but at most a tenth of the run"
	scheduleFreeRule = "schedulefree has no other"
	branchesRule     = "branches = 25%, 50% in wsds, 14%, 43% in restarts, 25%, 50%, 75% in cyclic, 80%, 90% in step"
)

// usualBranches holds the default branches of the schedules that have branches.
var usualBranches = map[string]string{
	"wsds": "25%, 50%", "restarts": "14%, 43%", "cyclic": "25%, 50%, 75%", "step": "80%, 90%",
}

// resolveSchedule fills in values that were not given, and converts lengths into steps.
func (c *Config) resolveSchedule() {
	c.resolveAmounts()
	const warmup = "schedule.warmup"
	if from, given := c.origins[warmup]; given && c.Schedule.Warmup == 0 { // an explicit 0 means no warmup
		c.Derive(warmup, 1, "no warmup")
		from.Rule = c.origins[warmup].Rule
		c.origins[warmup] = from
	}
	if _, given := c.origins["schedule.name"]; !given && c.Optimizer.Name == "schedulefree" {
		c.DeriveText("schedule.name", "constant", scheduleFreeRule)
	}
	s, ratio, warm := &c.Schedule, 0.0, min(max(c.Train.Steps/100, 1), 2000)
	switch s.Name {
	case "cosine", "inverse_sqrt", "step", "cyclic":
		ratio = 0.1
	case "one_cycle":
		ratio, warm = 4e-6, max(c.Train.Steps*3/10, 1)
	case "power":
		warm = max(min(c.Train.Steps/10, 100), 1)
	}
	if decays := s.Name == "wsd" || s.Name == "wsds" || s.Name == "power"; decays && s.DecayShape == "exponential" {
		ratio = 0.1
	}
	c.derive(warmup, warm)
	c.deriveNumber("schedule.final_ratio", ratio, finalRatioRule)
	if usual := usualBranches[c.Schedule.Name]; usual != "" && !c.Schedule.Branches.Given() {
		c.set(allKeys[keyIndex["schedule.branches"]], usual, Origin{Rule: branchesRule}) // it is never wrong
	}
}

// Position returns the position of a run in its schedule after the given number of steps: in steps, or in tokens if
// the batch grows.
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
	k.horizon()
	if decays := s.Name == "wsd" || s.Name == "wsds" || s.Name == "power"; decays && s.FinalRatio == 0 &&
		s.DecayShape == "exponential" {
		k.fault("schedule.final_ratio", "schedule.final_ratio = 0.1",
			"schedule.final_ratio = 0 with schedule.decay_shape = exponential: by equal factors a rate never gets to 0")
	}
	if s.Name == "step" && s.FinalRatio == 0 {
		k.fault("schedule.final_ratio", "schedule.final_ratio = 0.1",
			"schedule.final_ratio = 0 with schedule.name = step: the first fall would end training")
	}
}

// remarkDecay adds a remark if the warmup of a valid configuration leaves no step for the decay at its end.
func (c *Config) remarkDecay() {
	s, steps := c.Schedule, c.Train.Steps
	decay := int(math.Round(s.DecayFraction * float64(steps)))
	if s.Name != "wsd" && s.Name != "power" || s.Horizon > 0 || decay < 1 || s.Warmup < steps {
		return
	}
	c.Remark(fmt.Sprintf("schedule.warmup = %d takes all of train.steps = %d: the rate does not decay, and the run "+
		"ends at its peak. A larger train.steps or a smaller schedule.warmup leaves steps for the decay",
		s.Warmup, steps))
}

// horizon checks the end of a decay that does not end with the run. It may end earlier, or later (OLMo 2), so that the
// run ends at a higher rate.
func (k *checker) horizon() {
	const key = "schedule.horizon"
	s, steps := &k.c.Schedule, k.c.Train.Steps
	switch at := s.Horizon; {
	case at == 0:
	case at <= s.Warmup:
		k.fault(key, fmt.Sprintf("a step after the warmup, which ends at %d", s.Warmup),
			"%s = %d is not after schedule.warmup = %d", key, at, s.Warmup)
	case s.FinalRatio == 0 && at < steps:
		k.fault(key, "schedule.final_ratio = 0.1",
			"%s = %d with schedule.final_ratio = 0: after that step nothing would be learnt", key, at)
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
	warmup := s.Warmup
	if s.Name == "cyclic" {
		warmup = 0 // it has none
	}
	before := position(warmup)
	for i, end := range ends {
		at := position(end)
		switch begin := at - int(math.Round(s.DecayFraction*float64(at))); {
		case s.Name != "wsds" && at <= before:
			k.fault(key, "steps of the run in ascending order, after the warmup",
				"%s: step %d is not between step %d and the end of the run, train.steps = %d", key, end,
				append([]int{warmup}, ends...)[i], k.c.Train.Steps)
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
