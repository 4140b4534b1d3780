package local

import (
	"fmt"
	"time"

	"anneal/comm"
	"anneal/tensor"
)

// link is the state of a transfer that all ranks share. Its lists are by rank.
type link struct {
	name     string
	out      [][][]tensor.Tensor // what a rank sends, by receiver
	room     [][][]tensor.Tensor // by sender, if given; only the shapes are used
	sets     []int               // how often a rank has set its tensors: once in NewExchange, then in Set
	started  []int               // calls of Start
	released []int               // number of the last Start whose tensors the rank has released
	reading  []bool              // between Wait and Release
}

// sends reports whether rank r sends something to another rank. It is true as long as r has not prepared the transfer.
func (l *link) sends(r, to int) bool { return l.sets[r] == 0 || len(l.out[r][to]) > 0 }

// transfer is one rank's view of a link.
type transfer struct {
	*link
	rank    *rank
	senders int               // of the last Start
	sent    int               // the last Start in which this rank sent, from 1
	sending bool              // between Start and Sent
	from    [][]tensor.Tensor // what came, by sender
}

// NewExchange implements comm.Comm.
func (c *rank) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check(call{kind: preparing, name: name})
	n := c.Size()
	if c.exchanges == len(c.links) {
		c.links = append(c.links, &link{
			name: name, out: make([][][]tensor.Tensor, n), room: make([][][]tensor.Tensor, n), sets: make([]int, n),
			started: make([]int, n), released: make([]int, n), reading: make([]bool, n),
		})
	}
	t := &transfer{link: c.links[c.exchanges], rank: c, from: make([][]tensor.Tensor, n)}
	c.exchanges++
	t.set(out, room)
	return t
}

// Set implements comm.Transfer.
func (t *transfer) Set(out, room [][]tensor.Tensor) {
	c := t.rank
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check(call{kind: setting, name: t.name, link: t.link})
	if t.isUnderWay("sets") {
		return
	}
	if t.sending {
		c.fail(c.number(), fmt.Errorf("rank %d sets %s before Sent", c.number(), t.name))
		return
	}
	t.set(out, room)
}

// isUnderWay reports whether this rank has not yet released what it received. This is an error that ends all groups.
func (t *transfer) isUnderWay(does string) bool {
	c := t.rank
	if t.started[c.me] <= t.released[c.me] {
		return false
	}
	c.fail(c.number(), fmt.Errorf("rank %d %s %s before it has released what came before", c.number(), does, t.name))
	return true
}

// set copies lists, because other ranks may read them after the caller has changed them. Lists for another number of
// ranks are an error that ends all groups.
func (t *transfer) set(out, room [][]tensor.Tensor) {
	c, l := t.rank, t.link
	if n := c.Size(); len(out) != n || len(room) != 0 && len(room) != n {
		c.fail(c.number(), fmt.Errorf("rank %d prepares %s with tensors for %d ranks and room for those of %d, "+
			"but the group has %d", c.number(), t.name, len(out), len(room), n))
		out, room = make([][]tensor.Tensor, n), nil
	}
	l.out[c.me], l.room[c.me] = comm.Keep(l.out[c.me], out), comm.Keep(l.room[c.me], room)
	l.sets[c.me]++
	t.from[c.me] = l.out[c.me][c.me]
	for r := range c.ranks {
		if r != c.me && l.sets[r] == l.sets[c.me] {
			c.compare(l, r, c.me, r)
			c.compare(l, c.me, r, r)
		}
	}
	c.changed.Broadcast() // ranks that wait for this one may see that it sends them nothing
}

// compare checks that a receiver has room for the sender's tensors; one of the two is this rank, other is the other.
func (c *rank) compare(l *link, sender, receiver, other int) {
	if len(l.room[receiver]) == 0 {
		return
	}
	out, room := l.out[sender][receiver], l.room[receiver][sender]
	same := len(out) == len(room)
	for k := 0; same && k < len(out); k++ {
		same = out[k].DType() == room[k].DType() && out[k].Len() == room[k].Len()
	}
	if same {
		return
	}
	mine := fmt.Sprintf("sends %s in %s", describe(out), l.name)
	theirs := fmt.Sprintf("has room for %s", describe(room))
	if sender == other {
		mine, theirs = fmt.Sprintf("has room for %s in %s", describe(room), l.name), "sends "+describe(out)
	}
	c.mismatch(other, mine, theirs)
}

// describe lists the sizes of tensors.
func describe(list []tensor.Tensor) string {
	if len(list) == 0 {
		return "no tensors"
	}
	text := ""
	for i := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d of %v", list[i].Len(), list[i].DType())
	}
	return text
}

// Start implements comm.Transfer.
func (t *transfer) Start(senders int) {
	c := t.rank
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check(call{kind: starting, name: t.name, link: t.link, senders: senders})
	t.isUnderWay("starts")
	t.started[c.me]++
	if t.senders = senders; c.me < senders {
		t.sent, t.sending = t.started[c.me], true
	}
	c.changed.Broadcast()
}

// Wait implements comm.Transfer.
func (t *transfer) Wait() error {
	c := t.rank
	c.mu.Lock()
	defer c.mu.Unlock()
	round := t.started[c.me]
	err := c.await(wait{kind: receiving, link: t.link, round: round, senders: t.senders})
	t.reading[c.me] = err == nil
	for r := range c.ranks {
		if r != c.me {
			t.from[r] = nil
		}
		if err == nil && r < t.senders && t.sets[r] == t.sets[c.me] { // else r had nothing for this rank
			t.from[r] = t.out[r][c.me]
		}
	}
	return err
}

// From implements comm.Transfer: it returns the sender's own tensors.
func (t *transfer) From(r int) []tensor.Tensor { return t.from[r] }

// Release implements comm.Transfer.
func (t *transfer) Release() {
	c := t.rank
	c.mu.Lock()
	defer c.mu.Unlock()
	t.released[c.me] = t.started[c.me]
	t.reading[c.me] = false
	c.changed.Broadcast()
}

// grace is how long Sent and Abort wait for readers after the end of all groups. A reader may hang.
const grace = time.Second

// Sent implements comm.Transfer. If the group has ended, Sent returns the group's error once no rank reads the
// tensors.
func (t *transfer) Sent() error {
	c := t.rank
	c.mu.Lock()
	defer c.mu.Unlock()
	t.sending = false
	err := c.await(wait{kind: sending, link: t.link, round: t.sent})
	if err != nil {
		c.block(wait{kind: leaving, link: t.link}, time.Until(c.ended.Add(grace)))
	}
	return err
}
