//go:build mpi && linux

package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"anneal/comm"
)

// Tags of messages between two ranks. Each group that contains both has its own span of tags; the first is the
// world's. A library has at least 32,767 tags.
const (
	tagHead     = iota // the first part of a meeting's message
	tagRest            // and the others
	tagEnd             // in the world: the reason why a rank ends all groups
	tagFirst           // of transfers
	tagSpan     = 64
	tagLimit    = 32767
	transferTag = tagSpan - tagFirst
)

// world is the state that all groups of this rank share.
type world struct {
	info    Info
	timeout time.Duration
	thread  *thread
	shared  []int     // by rank of the world: the groups to which both it and this rank belong
	spare   sync.Once // of spare

	mu    sync.Mutex
	err   error         // why the groups ended, or nil
	lost  int           // the rank that was lost; -1 if unknown
	heard bool          // another rank ended them
	down  chan struct{} // closed when they have ended
	told  chan struct{} // closed when the other ranks have been told
}

// group is some ranks of the world, or all. It implements Group.
type group struct {
	*world
	me, size int
	numbers  []int // of its ranks in the world
	tags     []int // by rank: the first of the span for messages between it and this rank

	meeting   meeting
	calls     uint64 // a hash of all calls so far, which all ranks must make in the same order
	last      string // the last one
	exchanges int
}

// newGroup returns a group of ranks of the world, of which this one is number me.
func (w *world) newGroup(me int, numbers []int) (*group, error) {
	g := &group{world: w, me: me, size: len(numbers), numbers: numbers, tags: make([]int, len(numbers))}
	for r, number := range numbers {
		if g.tags[r] = w.shared[number] * tagSpan; g.tags[r]+tagSpan > tagLimit {
			return nil, fmt.Errorf("more than %d groups to which ranks %d and %d both belong: MPI has no further tags",
				w.shared[number], w.info.Rank, number)
		}
	}
	for _, number := range numbers {
		w.shared[number]++
	}
	g.meeting.init(g)
	return g, nil
}

// part is a group of some ranks. Only the world is closed, for all groups.
type part struct{ *group }

func (part) Close() error { return nil }

// Group implements comm.Comm. Two ranks create their common groups in the same order, so they agree on tags without a
// message.
func (g *group) Group(ranks []int) (comm.Comm, error) {
	me, err := comm.Place(g, ranks)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, len(ranks))
	for i, r := range ranks {
		numbers[i] = g.numbers[r]
	}
	made, err := g.newGroup(me, numbers)
	if err != nil {
		return nil, err
	}
	made.note(fmt.Sprintf("asked for the group of the ranks %v", numbers), 0)
	return part{made}, nil
}

func (g *group) Rank() int                  { return g.me }
func (g *group) Size() int                  { return g.size }
func (g *group) InPlace() bool              { return false }
func (g *group) SetTimeout(d time.Duration) { g.timeout = d }
func (g *group) Info() Info                 { return g.info }

// meet is the first call, in which ranks exchange the names of their hosts.
func (g *group) meet() error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	all, err := g.Share([]byte(host))
	if err != nil {
		return err
	}
	for _, name := range all {
		g.info.Hosts = append(g.info.Hosts, string(name))
	}
	return nil
}

// host returns the host of a rank, "" if unknown.
func (w *world) host(rank int) string {
	if rank < 0 || rank >= len(w.info.Hosts) {
		return ""
	}
	return w.info.Hosts[rank]
}

// Share implements comm.Comm.
func (g *group) Share(mine []byte) ([][]byte, error) {
	return g.meetAs("the exchange of messages", "shares a message", func(int) []byte { return mine }, true)
}

// Abort implements comm.Comm. It returns when the other ranks have been told, or cannot be told.
func (g *group) Abort(err error) {
	g.fail(g.info.Rank, err)
	select {
	case <-g.told:
	case <-time.After(2 * grace): // the library does not return
	}
}

// Close implements comm.Comm: it waits for all ranks, unless the group has ended.
func (g *group) Close() error {
	_, err := g.meetAs("the end", "closes the group", func(int) []byte { return nil }, true)
	reply := make(chan error, 1)
	patience := time.NewTimer(g.timeout)
	defer patience.Stop()
	if err != nil {
		patience.Reset(2 * grace)
	}
	select {
	case g.thread.quit <- reply:
		return errors.Join(err, <-reply)
	case <-patience.C:
		return err
	}
}

// fail ends all groups. The first reason counts.
func (w *world) fail(lost int, err error) { w.end(lost, err, false) }

func (w *world) end(lost int, err error, heard bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.lost, w.err, w.heard = lost, err, heard
		close(w.down)
	}
}

// farewell returns the messages that tell the other ranks why this rank has ended the groups; nil if another rank has
// ended them.
func (w *world) farewell() *batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard {
		return nil
	}
	text := w.err.Error()
	text = text[:min(len(text), maxReason-reasonHead)]
	reason := binary.LittleEndian.AppendUint32(nil, uint32(int32(w.lost)))
	reason = binary.LittleEndian.AppendUint32(reason, uint32(len(text)))
	reason = append(reason, text...)
	var list []message
	for r := range w.info.Size {
		if r != w.info.Rank {
			m := message{send: true, peer: r, tag: tagEnd, data: unsafe.Pointer(&reason[0]), size: len(reason)}
			list = append(list, m)
		}
	}
	return newBatch(list)
}

const (
	maxReason  = 1024 // bytes of a reason
	reasonHead = 8    // bytes before the text: the lost rank, and the length of the text
)

// ended is called when another rank has ended all groups.
func (w *world) ended(reason []byte) {
	lost := int(int32(binary.LittleEndian.Uint32(reason)))
	length := min(int(binary.LittleEndian.Uint32(reason[4:])), maxReason-reasonHead)
	w.end(lost, errors.New(string(reason[reasonHead:reasonHead+length])), true)
}

// failure is the error of a call after the groups have ended; nil if they have not.
func (w *world) failure(at string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return nil
	}
	if mine, ok := w.err.(*comm.MismatchError); ok {
		return mine
	}
	return &comm.LostError{Rank: w.lost, Host: w.host(w.lost), At: at, Err: w.err}
}

// send hands a batch to the thread.
func (w *world) send(b *batch, n int) {
	if b.n = n; n == 0 {
		b.done <- struct{}{}
		return
	}
	select {
	case w.thread.batches <- b:
	case <-w.down:
	}
}

// await waits until a batch is complete, all groups end or the deadline has passed.
func (w *world) await(b *batch, at string) error {
	select {
	case <-b.done:
		return w.failure(at)
	default:
	}
	b.alarm.Reset(w.timeout)
	defer b.alarm.Stop()
	select {
	case <-b.done:
	case <-w.down:
	case <-b.alarm.C:
		return w.late(b, at)
	}
	return w.failure(at)
}

// late ends all groups because the deadline of this rank has passed.
func (w *world) late(b *batch, at string) error {
	who := b.missing()
	e := &comm.LostError{
		Rank: who, Host: w.host(who), At: at, For: w.timeout, Err: fmt.Errorf("no answer for %v", w.timeout),
	}
	w.fail(who, e)
	return e
}
