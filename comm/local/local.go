package local

import (
	"sync"
	"time"

	"anneal/comm"
)

// Options of a group. The zero value is usable.
type Options struct {
	Timeout time.Duration // how long a rank waits for another; 0 means ten minutes
}

// New returns a group of n ranks, one value for each goroutine.
func New(n int, o Options) []comm.Comm {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	g := &group{size: n, timeout: o.Timeout, ranks: make([]*rank, n)}
	g.changed.L = &g.mu
	for turn := range g.messages {
		g.messages[turn] = make([][]byte, n)
	}
	list := make([]comm.Comm, n)
	for r := range list {
		c := &rank{group: g, me: r}
		c.alarm = time.AfterFunc(time.Hour, g.wake)
		c.alarm.Stop()
		g.ranks[r], list[r] = c, c
	}
	return list
}

// group is what ranks share. The lock guards it and them.
type group struct {
	size    int
	timeout time.Duration

	mu      sync.Mutex
	changed sync.Cond
	ranks   []*rank
	links   []*link // transfers, in the order of NewExchange
	order   order

	messages [2][][]byte // of Share: its calls take turns

	err   error // why the group ended, or nil
	lost  int   // who was lost then
	ended time.Time
}

// rank is the group as one of its ranks sees it.
type rank struct {
	*group
	me        int
	alarm     *time.Timer // rings when the deadline of a wait has passed
	waiting   wait
	shares    int // calls of Share
	exchanges int // calls of NewExchange
	calls     int // of those whose order is checked
}

func (c *rank) Rank() int     { return c.me }
func (c *rank) Size() int     { return c.size }
func (c *rank) InPlace() bool { return true }
func (c *rank) Close() error  { return nil }

// Abort implements comm.Comm. When it returns, nobody reads this rank's tensors any more.
func (c *rank) Abort(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(c.me, err)
	end := c.ended.Add(grace)
	defer time.AfterFunc(grace, c.wake).Stop()
	for c.isRead() && time.Now().Before(end) {
		c.changed.Wait()
	}
}

// isRead reports whether a rank reads the tensors of this one.
func (c *rank) isRead() bool {
	for _, l := range c.links {
		if c.missing(wait{kind: leaving, link: l}) >= 0 {
			return true
		}
	}
	return false
}

// fail ends the group. The first reason counts.
func (g *group) fail(lost int, err error) {
	if g.err == nil {
		g.lost, g.err, g.ended = lost, err, time.Now()
		g.changed.Broadcast()
	}
}

// Share implements comm.Comm. Two sets of messages take turns, so that a fast rank does not overwrite what a slow one
// still reads: it begins its next call but one only after all have begun the next.
func (c *rank) Share(mine []byte) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check(call{kind: sharing})
	turn := c.messages[c.shares%2]
	turn[c.me] = append(turn[c.me][:0], mine...)
	c.shares++
	c.changed.Broadcast()
	if err := c.await(wait{kind: sharing, round: c.shares}); err != nil {
		return nil, err
	}
	return turn, nil
}
