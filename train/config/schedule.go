package config

import (
	"fmt"
	"math"
	"strings"
)

// Branches returns the steps at which the branches of a wsds schedule end; the last is the end of the run.
func (c *Config) Branches() ([]int, error) {
	var ends []int
	for text := range strings.SplitSeq(c.Schedule.Branches, ",") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		a, err := parseAmount(text)
		if err != nil {
			return nil, err
		}
		ends = append(ends, c.steps(a))
	}
	return append(ends, c.Train.Steps), nil
}

const finalRatioRule = "final_ratio = 0.1 in cosine and inverse_sqrt, else 0"

// resolveSchedule fills what was left out, and turns lengths into steps.
func (c *Config) resolveSchedule() {
	c.resolveAmounts()
	c.derive("schedule.warmup", min(max(c.Train.Steps/100, 1), 2000))
	ratio := 0.0
	if c.Schedule.Name == "cosine" || c.Schedule.Name == "inverse_sqrt" {
		ratio = 0.1
	}
	c.deriveNumber("schedule.final_ratio", ratio, finalRatioRule)
}

// schedule checks the learning rate over the run.
func (k *checker) schedule() {
	s, steps := &k.c.Schedule, k.c.Train.Steps
	if k.between("schedule.warmup", s.Warmup, 1, 1<<40) && s.Warmup > steps && steps > 0 {
		k.fault("schedule.warmup", fmt.Sprintf("schedule.warmup = %d", max(steps/100, 1)), "schedule.warmup = %d is longer than the run, train.steps = %d", s.Warmup, steps)
	}
	k.number("schedule.final_ratio", s.FinalRatio, 0, 1, "[]")
	k.number("schedule.decay_fraction", s.DecayFraction, 0, 1, "(]")
	k.branches()
}

func (k *checker) branches() {
	const key = "schedule.branches"
	s := &k.c.Schedule
	if (s.Branches != "") != (s.Name == "wsds") {
		if s.Name == "wsds" {
			k.fault("schedule.name", key+" = 25%, 50%", "schedule.name = wsds needs %s, the places where the learning rate has decayed and rises to the peak again", key)
		} else {
			k.fault(key, "schedule.name = wsds", "%s has no effect with schedule.name = %s", key, s.Name)
		}
		return
	}
	if s.Name != "wsds" {
		return
	}
	ends, err := k.c.Branches()
	if err != nil {
		k.fault(key, key+" = 25%, 50%", "%s: %v", key, err)
		return
	}
	before := s.Warmup
	for _, end := range ends {
		decay := int(math.Round(s.DecayFraction * float64(end)))
		if end > k.c.Train.Steps || end-decay < before {
			k.fault(key, "branches further apart, or a smaller schedule.decay_fraction",
				"%s: the branch that ends at step %d begins to decay at %d, before %d, where warmup or the branch before it ends, or lies beyond train.steps = %d",
				key, end, end-decay, before, k.c.Train.Steps)
			return
		}
		before = end
	}
}
