package run

import (
	"math"
	"time"
)

// clock measures the training rate, excluding the time for evaluation.
type clock struct {
	busy   time.Duration
	since  time.Time
	marks  []mark // of the last seconds, oldest first
	origin mark

	step   time.Duration // from one tick to the next, without pauses
	paused time.Duration // since the last tick
}

// mark holds the tokens and operations done after some busy time.
type mark struct {
	at     time.Duration
	tokens int64
	flops  float64 // of this process
}

// rateWindow is the time window of the current rate.
const rateWindow = 10 * time.Second

// start begins the measurement at a number of tokens.
func (c *clock) start(tokens int64) {
	*c = clock{since: time.Now(), origin: mark{tokens: tokens}}
	c.marks = append(c.marks, c.origin)
}

// tick records the end of a step with flops operations, after which training has reached tokens.
func (c *clock) tick(tokens int64, flops float64) {
	now := time.Now()
	c.step, c.paused = now.Sub(c.since), 0
	c.busy += c.step
	c.since = now
	c.marks = append(c.marks, mark{c.busy, tokens, c.marks[len(c.marks)-1].flops + flops})
	for len(c.marks) > 2 && c.busy-c.marks[1].at > rateWindow {
		c.marks = append(c.marks[:0], c.marks[1:]...)
	}
}

// pause excludes the time since the last tick from the measurement.
func (c *clock) pause() {
	now := time.Now()
	c.paused += now.Sub(c.since)
	c.since = now
}

// rate returns the tokens per second of the last seconds; NaN before the first tick.
func (c *clock) rate() float64 { return c.speed(c.marks[0]) }

// flops returns the operations per second of the last seconds; NaN before the first tick.
func (c *clock) flops() float64 {
	from, last := c.marks[0], c.marks[len(c.marks)-1]
	if last.at == from.at {
		return math.NaN()
	}
	return (last.flops - from.flops) / (last.at - from.at).Seconds()
}

// average returns the tokens per second since start.
func (c *clock) average() float64 { return c.speed(c.origin) }

// speed returns the tokens per second from a mark to the last tick.
func (c *clock) speed(from mark) float64 {
	last := c.marks[len(c.marks)-1]
	if last.at == from.at {
		return math.NaN()
	}
	return float64(last.tokens-from.tokens) / (last.at - from.at).Seconds()
}
