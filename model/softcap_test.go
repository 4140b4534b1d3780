package model

import (
	"testing"

	"anneal/precision"
)

// capped is a small model whose scores of attention, or many of them, reach their soft-cap.
var capped = func() Config {
	c := small
	c.AttentionSoftcap, c.ScoreDim, c.Attention = 0.1, 1, seen("window:4,full")
	return c
}()

func TestGradientsOfCappedScoresMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"kept":        func(*Config) {},
		"recomputed":  func(c *Config) { c.Recompute = Layout{Whole: 1, Segment: 1, Attention: 1} },
		"sinks":       func(c *Config) { c.AttentionSinks = true },
		"overlapping": func(c *Config) { c.Attention = seen("longnet:4/1:8/2") },
	} {
		t.Run(name, func(t *testing.T) {
			c := capped
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

func TestCappedScoresKeepTheirBitsAndFootprint(t *testing.T) {
	checkFootprint(t, capped)
	for _, policy := range precision.Names() {
		c := capped
		c.Layers = 5
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, capped, policy)
	}
}
