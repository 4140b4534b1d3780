package config

import (
	"math"
	"reflect"
	"slices"
)

// A Stretch is the steps of a run up to Until, after those of the stretch before, which were made with one
// configuration.
type Stretch struct {
	Until  int
	Config *Config
}

// After returns the configuration for the data of a run that made steps with other configurations before it continues
// with c. Its Order and Mix count the samples that these steps have read, so that a change of the mixture comes at its
// step even if train.batch_tokens has changed meanwhile. The result is c if that makes no difference, or if a change
// would come after the end or at the same step as another.
func (c *Config) After(past []Stretch) *Config {
	now, _ := c.BatchRamp()
	other := func(s Stretch) bool {
		was, _ := s.Config.BatchRamp()
		return !reflect.DeepEqual(was, now)
	}
	if !c.MixFollowsLength() && !c.Data.Order.Given() || !slices.ContainsFunc(past, other) {
		return c
	}
	r := c.Clone()
	r.past = past
	_, faultyMix := r.weightsStages()
	if _, faultyOrder := r.Order(); faultyMix != nil || faultyOrder != nil {
		return c
	}
	return r
}

// stretches returns the steps of the run by their configurations, those that are still to come included.
func (c *Config) stretches() []Stretch { return append(slices.Clip(c.past), Stretch{math.MaxInt, c}) }

// tokensAfter returns how many tokens the run reads in its first steps.
func (c *Config) tokensAfter(steps int) (tokens int) {
	at := 0
	for _, s := range c.stretches() {
		ramp, _ := s.Config.BatchRamp()
		until := min(s.Until, steps)
		tokens, at = ramp.After(tokens, until-at), until
	}
	return tokens
}

// stepsFor returns the number of steps after which the run has read at least the given tokens.
func (c *Config) stepsFor(tokens int) (steps int) {
	read := 0
	for _, s := range c.stretches() {
		ramp, _ := s.Config.BatchRamp()
		n := min(ramp.StepsFrom(read, tokens), s.Until-steps)
		read, steps = ramp.After(read, n), steps+n
	}
	return steps
}
