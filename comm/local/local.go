package local

import (
	"fmt"
	"sync"
	"time"

	"anneal/comm"
)

// Options of a group. The zero value is usable.
type Options struct {
	Timeout time.Duration // how long a rank waits for another; 0 means ten minutes
}

// New returns a group of n ranks, one value for each goroutine; none if n is below 1.
func New(n int, o Options) []comm.Comm {
	n = max(n, 0)
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	w := &world{timeout: o.Timeout, roles: make([][]*rank, n)}
	numbers := make([]int, n)
	for r := range numbers {
		numbers[r] = r
	}
	list := make([]comm.Comm, n)
	for r, c := range w.newGroup(numbers).ranks {
		list[r] = c
	}
	return list
}

// world is the state that all groups share. Its lock guards the world, the groups and their ranks.
type world struct {
	timeout time.Duration

	mu     sync.Mutex
	groups []*group
	roles  [][]*rank // the views that a rank of the world has of its groups

	err   error // why the groups ended, or nil
	lost  int   // who was lost then
	ended time.Time
}

// group is some ranks of the world, or all. A rank that waits in it is not woken by events in other groups.
type group struct {
	*world
	numbers []int // of its ranks in the world
	changed sync.Cond
	ranks   []*rank
	links   []*link // transfers, in the order of NewExchange
	order   order
	parts   map[string][]*group // groups of its ranks, by list, in the order of the calls

	messages [2][][]byte // of Share: its calls take turns
}

// rank is one rank's view of a group.
type rank struct {
	*group
	me        int
	alarm     *time.Timer // rings when the deadline of a wait has passed
	waiting   wait
	shares    int            // calls of Share
	exchanges int            // calls of NewExchange
	asked     map[string]int // calls of Group, by list
	calls     int            // calls whose order is checked
}

// newGroup makes a group of ranks of the world.
func (w *world) newGroup(numbers []int) *group {
	n := len(numbers)
	g := &group{world: w, numbers: numbers, ranks: make([]*rank, n), parts: map[string][]*group{}}
	g.changed.L = &w.mu
	for turn := range g.messages {
		g.messages[turn] = make([][]byte, n)
	}
	for r, number := range numbers {
		c := &rank{group: g, me: r, asked: map[string]int{}}
		c.alarm = time.AfterFunc(time.Hour, g.wake)
		c.alarm.Stop()
		g.ranks[r] = c
		w.roles[number] = append(w.roles[number], c)
	}
	w.groups = append(w.groups, g)
	return g
}

func (c *rank) Rank() int     { return c.me }
func (c *rank) Size() int     { return len(c.ranks) }
func (c *rank) InPlace() bool { return true }
func (c *rank) Close() error  { return nil }

// number returns the number of this rank in the world.
func (c *rank) number() int { return c.numbers[c.me] }

// Group implements comm.Comm. The first rank that asks for a group creates it, without waiting.
func (c *rank) Group(ranks []int) (comm.Comm, error) {
	me, err := comm.Place(c, ranks)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := fmt.Sprint(ranks)
	turn := c.asked[list]
	c.asked[list]++
	if turn == len(c.parts[list]) {
		numbers := make([]int, len(ranks))
		for i, r := range ranks {
			numbers[i] = c.numbers[r]
		}
		c.parts[list] = append(c.parts[list], c.newGroup(numbers))
	}
	return c.parts[list][turn].ranks[me], nil
}

// Abort implements comm.Comm. When it returns, no rank reads this rank's tensors any more.
func (c *rank) Abort(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(c.number(), err)
	end := c.ended.Add(grace)
	defer time.AfterFunc(grace, c.wakeAll).Stop()
	for _, role := range c.roles[c.number()] {
		for role.isRead() && time.Now().Before(end) {
			role.changed.Wait()
		}
	}
}

// isRead reports whether a rank of the group reads the tensors of this one.
func (c *rank) isRead() bool {
	for _, l := range c.links {
		if c.missing(wait{kind: leaving, link: l}) >= 0 {
			return true
		}
	}
	return false
}

// fail ends all groups. The first reason counts.
func (w *world) fail(lost int, err error) {
	if w.err == nil {
		w.lost, w.err, w.ended = lost, err, time.Now()
		for _, g := range w.groups {
			g.changed.Broadcast()
		}
	}
}

// Share implements comm.Comm. Two sets of messages take turns, so that a fast rank does not overwrite messages that a
// slow one still reads: a rank begins its next call but one only after all ranks have begun the next.
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
