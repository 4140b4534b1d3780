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

// Tags of messages. Those of transfers follow; a library has at least 32,767 tags.
const (
	tagHead  = iota // the first part of a meeting's message
	tagRest         // and the others
	tagEnd          // the reason why a rank ends the group
	tagFirst        // of transfers
	tagLimit = 32767
)

// group implements Group.
type group struct {
	info     Info
	me, size int
	timeout  time.Duration
	thread   *thread

	meeting   meeting
	calls     uint64 // a hash of all calls so far, which all ranks must make in the same order
	last      string // the last one
	exchanges int

	mu    sync.Mutex
	err   error         // why the group ended, or nil
	lost  int           // who was lost then; -1 if nobody knows
	heard bool          // another rank ended it
	down  chan struct{} // closed when it has ended
	told  chan struct{} // closed when the others have been told
}

func (g *group) Rank() int                  { return g.me }
func (g *group) Size() int                  { return g.size }
func (g *group) InPlace() bool              { return false }
func (g *group) SetTimeout(d time.Duration) { g.timeout = d }
func (g *group) Info() Info                 { return g.info }

// meet is the first call: ranks learn where the others are.
func (g *group) meet() error {
	g.meeting.init(g.me, g.size)
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

// host returns where a rank is, "" if that is unknown.
func (g *group) host(rank int) string {
	if rank < 0 || rank >= len(g.info.Hosts) {
		return ""
	}
	return g.info.Hosts[rank]
}

// Share implements comm.Comm.
func (g *group) Share(mine []byte) ([][]byte, error) {
	return g.meetAs("the exchange of messages", "shares a message", func(int) []byte { return mine }, true)
}

// Abort implements comm.Comm. It returns when the others have been told, or cannot be.
func (g *group) Abort(err error) {
	g.fail(g.me, err)
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

// fail ends the group. The first reason counts.
func (g *group) fail(lost int, err error) { g.end(lost, err, false) }

func (g *group) end(lost int, err error, heard bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.lost, g.err, g.heard = lost, err, heard
		close(g.down)
	}
}

// farewell returns the messages that tell the others why this rank has ended the group; nil if it was another.
func (g *group) farewell() *batch {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.heard {
		return nil
	}
	text := g.err.Error()
	text = text[:min(len(text), maxReason-reasonHead)]
	reason := binary.LittleEndian.AppendUint32(nil, uint32(int32(g.lost)))
	reason = binary.LittleEndian.AppendUint32(reason, uint32(len(text)))
	reason = append(reason, text...)
	var list []message
	for r := range g.size {
		if r != g.me {
			m := message{send: true, peer: r, tag: tagEnd, data: unsafe.Pointer(&reason[0]), size: len(reason)}
			list = append(list, m)
		}
	}
	return newBatch(list)
}

const (
	maxReason  = 1024 // bytes of a reason
	reasonHead = 8    // of which who was lost, and the length of the text
)

// ended is called when another rank has ended the group.
func (g *group) ended(reason []byte) {
	lost := int(int32(binary.LittleEndian.Uint32(reason)))
	length := min(int(binary.LittleEndian.Uint32(reason[4:])), maxReason-reasonHead)
	g.end(lost, errors.New(string(reason[reasonHead:reasonHead+length])), true)
}

// failure is the error of a call after the group has ended; nil if it has not.
func (g *group) failure(at string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		return nil
	}
	if mine, ok := g.err.(*comm.MismatchError); ok {
		return mine
	}
	return &comm.LostError{Rank: g.lost, Host: g.host(g.lost), At: at, Err: g.err}
}

// send hands a batch to the thread.
func (g *group) send(b *batch, n int) {
	if b.n = n; n == 0 {
		b.done <- struct{}{}
		return
	}
	select {
	case g.thread.batches <- b:
	case <-g.down:
	}
}

// await waits until a batch is complete, the group ends or the deadline has passed.
func (g *group) await(b *batch, at string) error {
	select {
	case <-b.done:
		return g.failure(at)
	default:
	}
	b.alarm.Reset(g.timeout)
	defer b.alarm.Stop()
	select {
	case <-b.done:
	case <-g.down:
	case <-b.alarm.C:
		return g.late(b, at)
	}
	return g.failure(at)
}

// late ends the group because the deadline of this rank has passed.
func (g *group) late(b *batch, at string) error {
	who := b.missing()
	e := &comm.LostError{
		Rank: who, Host: g.host(who), At: at, For: g.timeout, Err: fmt.Errorf("no answer for %v", g.timeout),
	}
	g.fail(who, e)
	return e
}
