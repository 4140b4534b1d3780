package commtest

import (
	"fmt"
	"sync"
	"time"

	"anneal/comm"
	"anneal/tensor"
)

// A Network simulates the time of messages between ranks of one process. A rank sends its messages one after the
// other, at a rate; they arrive after a latency. Ranks compute meanwhile.
type Network struct {
	Latency        time.Duration
	BytesPerSecond float64 // that a rank sends
	Blocking       bool    // Start returns only when its messages have arrived, so ranks do not compute meanwhile
}

// Delay returns the ranks of a group over the network, in real time.
func (n Network) Delay(group []comm.Comm) []comm.Comm {
	begun := time.Now()
	s := newStation(n, newWire(len(group)), numbersTo(len(group)))
	list := make([]comm.Comm, len(group))
	for r, c := range group {
		list[r] = &delayed{Comm: c, station: s, clock: realTime{begun}}
	}
	return list
}

// Clocks returns the ranks of a group over the network, by clocks that do not follow real time. Two runs of a program
// show the same times.
func (n Network) Clocks(group []comm.Comm) []*Clock {
	s := newStation(n, newWire(len(group)), numbersTo(len(group)))
	list := make([]*Clock, len(group))
	for r, c := range group {
		v := &virtualTime{}
		list[r] = &Clock{delayed{Comm: c, station: s, clock: v}, v}
	}
	return list
}

// A Clock is a rank with a clock of its own. Only Compute and waiting for others let it advance.
type Clock struct {
	delayed
	time *virtualTime
}

// Compute lets time pass in which the rank computes.
func (c *Clock) Compute(d time.Duration) { c.time.now += d }

// Now returns the time of the rank, from 0.
func (c *Clock) Now() time.Duration { return c.time.now }

// clock is the time of a rank.
type clock interface {
	read() time.Duration
	until(t time.Duration) // waits; at once if it has passed
}

type realTime struct{ begun time.Time }

func (r realTime) read() time.Duration   { return time.Since(r.begun) }
func (r realTime) until(t time.Duration) { time.Sleep(t - r.read()) }

type virtualTime struct{ now time.Duration }

func (v *virtualTime) read() time.Duration   { return v.now }
func (v *virtualTime) until(t time.Duration) { v.now = max(v.now, t) }

// wire is what all groups of the ranks share.
type wire struct {
	mu   sync.Mutex
	free []time.Duration // by rank of the world: when what it sent has left
}

func newWire(ranks int) *wire { return &wire{free: make([]time.Duration, ranks)} }

// station holds the arrival times of the messages of a group's ranks.
type station struct {
	Network
	*wire
	numbers  []int               // of its ranks in the world
	messages [][]time.Duration   // by rank: when that of each Share arrives
	arrivals [][][]time.Duration // by transfer and rank: when that of each Start arrives
	parts    map[string]*station // by ranks, for groups of them
}

func newStation(n Network, w *wire, numbers []int) *station {
	return &station{
		Network: n, wire: w, numbers: numbers, messages: make([][]time.Duration, len(numbers)),
		parts: map[string]*station{},
	}
}

// numbersTo returns the numbers below n.
func numbersTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// send notes what rank r of the group sends at a time, and returns when it has left and when it arrives.
func (s *station) send(r int, now time.Duration, bytes int) (left, arrives time.Duration) {
	took := time.Duration(float64(bytes) / s.BytesPerSecond * float64(time.Second))
	free := &s.free[s.numbers[r]]
	*free = max(*free, now) + took
	return *free, *free + s.Latency
}

// delayed is a rank over a Network.
type delayed struct {
	comm.Comm
	*station
	clock  clock
	shares int
	links  int
	asked  map[string]int // calls of Group, by list
}

func (d *delayed) Group(ranks []int) (comm.Comm, error) {
	c, err := d.Comm.Group(ranks)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked == nil {
		d.asked = map[string]int{}
	}
	list := fmt.Sprint(ranks)
	d.asked[list]++
	list = fmt.Sprint(list, d.asked[list])
	if d.parts[list] == nil {
		numbers := make([]int, len(ranks))
		for i, r := range ranks {
			numbers[i] = d.numbers[r]
		}
		d.parts[list] = newStation(d.Network, d.wire, numbers)
	}
	return &delayed{Comm: c, station: d.parts[list], clock: d.clock}, nil
}

func (d *delayed) Share(mine []byte) ([][]byte, error) {
	me := d.Rank()
	d.mu.Lock()
	_, arrives := d.send(me, d.clock.read(), len(mine)*(d.Size()-1))
	d.messages[me] = append(d.messages[me], arrives)
	d.mu.Unlock()
	all, err := d.Comm.Share(mine)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	last := time.Duration(0)
	for r := range d.Size() {
		if r != me {
			last = max(last, d.messages[r][d.shares])
		}
	}
	d.mu.Unlock()
	d.shares++
	d.clock.until(last)
	return all, nil
}

func (d *delayed) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	d.mu.Lock()
	if d.links == len(d.arrivals) {
		d.arrivals = append(d.arrivals, make([][]time.Duration, d.Size()))
	}
	t := &onItsWay{Transfer: d.Comm.NewExchange(name, out, room), rank: d, link: d.links}
	d.mu.Unlock()
	d.links++
	t.count(out)
	return t
}

// onItsWay is a transfer in flight over a Network.
type onItsWay struct {
	comm.Transfer
	rank    *delayed
	link    int
	bytes   int
	round   int // of the last Start, from 1
	senders int
	left    time.Duration // when what this rank sent has left
}

// count counts the bytes that this rank sends.
func (t *onItsWay) count(out [][]tensor.Tensor) {
	t.bytes = 0
	for r, list := range out {
		for k := range list {
			if r != t.rank.Rank() {
				t.bytes += list[k].Bytes()
			}
		}
	}
}

func (t *onItsWay) Set(out, room [][]tensor.Tensor) {
	t.Transfer.Set(out, room)
	t.count(out)
}

func (t *onItsWay) Start(senders int) {
	d := t.rank
	me := d.Rank()
	t.round++
	t.senders = senders
	d.mu.Lock()
	arrives := time.Duration(0)
	if me < senders {
		t.left, arrives = d.send(me, d.clock.read(), t.bytes)
	}
	d.arrivals[t.link][me] = append(d.arrivals[t.link][me], arrives)
	d.mu.Unlock()
	t.Transfer.Start(senders)
	if d.Blocking {
		d.clock.until(arrives)
	}
}

func (t *onItsWay) Wait() error {
	if err := t.Transfer.Wait(); err != nil {
		return err
	}
	d := t.rank
	last := time.Duration(0)
	d.mu.Lock()
	for r := range t.senders {
		if at := d.arrivals[t.link][r]; r != d.Rank() && len(t.From(r)) > 0 {
			last = max(last, at[t.round-1])
		}
	}
	d.mu.Unlock()
	d.clock.until(last)
	return nil
}

func (t *onItsWay) Sent() error {
	if err := t.Transfer.Sent(); err != nil {
		return err
	}
	t.rank.clock.until(t.left)
	return nil
}
