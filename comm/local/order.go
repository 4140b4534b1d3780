package local

import (
	"fmt"

	"anneal/comm"
)

// order holds the calls of Share, NewExchange, Set and Start that some ranks of a group have made and others have not.
// All ranks must make the same calls in the same order.
type order struct {
	calls []call
	first int // number of calls[0] since the group began
}

type call struct {
	kind    kind
	name    string
	link    *link // that is set or started
	senders int
	by      int // the first rank that made it
	made    int // ranks that have made it
}

func (k call) String() string {
	switch k.kind {
	case sharing:
		return "shares a message"
	case preparing:
		return fmt.Sprintf("prepares %s", k.name)
	case setting:
		return fmt.Sprintf("sets %s", k.name)
	}
	return fmt.Sprintf("starts %s with %d senders", k.name, k.senders)
}

// check compares a call with the calls of the other ranks at the same place in the order.
func (c *rank) check(mine call) {
	o := &c.order
	place := c.calls - o.first
	c.calls++
	if place == len(o.calls) {
		mine.by = c.me
		o.calls = append(o.calls, mine)
	}
	theirs := &o.calls[place]
	if theirs.kind != mine.kind || theirs.name != mine.name || theirs.link != mine.link ||
		theirs.senders != mine.senders {
		c.mismatch(theirs.by, mine.String(), theirs.String())
		return
	}
	theirs.made++
	for len(o.calls) > 0 && o.calls[0].made == c.Size() {
		o.calls = o.calls[:copy(o.calls, o.calls[1:])]
		o.first++
	}
}

// mismatch ends the groups because this rank makes a different call from another rank.
func (c *rank) mismatch(other int, mine, theirs string) {
	me := c.number()
	c.fail(me, &comm.MismatchError{Rank: me, Other: c.numbers[other], Mine: mine, Theirs: theirs})
}
