package local

import (
	"errors"
	"fmt"
	"time"

	"anneal/comm"
)

// kind is the operation that a rank is in, or waits for.
type kind uint8

const (
	nothing   kind = iota
	sharing        // messages
	preparing      // a transfer
	setting
	starting
	receiving
	sending
	leaving // after the group has ended, until no rank reads
)

// wait describes what a rank waits for; the zero value stands for nothing.
type wait struct {
	kind    kind
	link    *link
	round   int // number of the call, from 1
	senders int
}

// String returns the name of the operation.
func (w wait) String() string {
	switch w.kind {
	case nothing:
		return "nothing"
	case sharing:
		return "the exchange of messages"
	case sending:
		return w.link.name + " (to be read)"
	}
	return w.link.name
}

// missing returns the first rank for which this one waits, or -1. It prefers one that computes to one that waits.
func (c *rank) missing(w wait) int {
	first := -1
	for r := range c.ranks {
		if r == c.me || !c.waitsFor(w, r) {
			continue
		}
		if c.waiter(c.numbers[r]) == nil {
			return r
		}
		if first < 0 {
			first = r
		}
	}
	return first
}

// waiter returns the view of a rank of the world in the group where it waits; nil if it does not wait.
func (w *world) waiter(number int) *rank {
	for _, role := range w.roles[number] {
		if role.waiting.kind != nothing {
			return role
		}
	}
	return nil
}

// waitsFor reports whether the awaited call of rank r has not happened yet.
func (c *rank) waitsFor(w wait, r int) bool {
	switch l := w.link; w.kind {
	case sharing:
		return c.ranks[r].shares < w.round
	case receiving:
		return r < w.senders && l.started[r] < w.round && (l.sets[r] < l.sets[c.me] || l.sends(r, c.me))
	case sending:
		return l.sends(c.me, r) && l.released[r] < w.round
	case leaving:
		return l.sets[c.me] > 0 && l.sends(c.me, r) && l.reading[r]
	}
	return false
}

// await waits until no rank is missing, the group ends or the deadline has passed.
func (c *rank) await(w wait) error {
	if c.err == nil {
		c.block(w, c.timeout)
	}
	switch {
	case c.err != nil:
		return c.failure(w)
	case c.missing(w) >= 0:
		return c.late(w)
	}
	return nil
}

// block waits until no rank is missing, the group ends or the time is up.
func (c *rank) block(w wait, limit time.Duration) {
	if c.missing(w) < 0 {
		return
	}
	deadline := time.Now().Add(limit) // before the alarm is set: when it rings, this has passed
	c.alarm.Reset(limit)
	c.waiting = w
	for ended := c.err != nil; (c.err != nil) == ended && c.missing(w) >= 0 && time.Now().Before(deadline); {
		c.changed.Wait()
	}
	c.waiting = wait{}
	c.alarm.Stop()
}

// late ends the groups because the deadline of this rank has passed. The rank that it waits for may itself wait for
// another, in this group or in another one, and so on. The last rank of this chain is lost.
func (c *rank) late(w wait) error {
	culprit := c.numbers[c.missing(w)]
	for range c.roles {
		other := c.waiter(culprit)
		if other == nil {
			break
		}
		next := other.missing(other.waiting)
		if next < 0 || other.numbers[next] == c.number() {
			break
		}
		culprit = other.numbers[next]
	}
	why := errors.New("it is not in a call")
	if other := c.waiter(culprit); other != nil {
		why = fmt.Errorf("it waits for %v", other.waiting)
	}
	e := &comm.LostError{Rank: culprit, At: w.String(), For: c.timeout, Err: why}
	c.fail(culprit, e)
	return e
}

// failure is the error of a call after the group has ended.
func (c *rank) failure(w wait) error {
	if mine, ok := c.err.(*comm.MismatchError); ok && mine.Rank == c.number() {
		return mine
	}
	return &comm.LostError{Rank: c.lost, At: w.String(), Err: c.err}
}

// wake lets every rank of the group check its deadline.
func (g *group) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed.Broadcast()
}

// wakeAll does the same in all groups.
func (w *world) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		g.changed.Broadcast()
	}
}
