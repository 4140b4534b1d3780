//go:build mpi && linux

package mpi

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"

	"anneal/comm"
)

// meeting is the memory of calls in which every rank has a message for every other. A message begins with its length,
// a hash of all calls that the rank has made, and a description of this call. Long messages are sent in several parts.
type meeting struct {
	mine   []byte   // this rank's message, if it is the same for all
	each   [][]byte // what it sends, by rank
	theirs [][]byte // what has come
	all    [][]byte // messages without the heads, which only this package reads

	out, heads, rests *batch
}

const (
	headSize  = 20   // bytes before the words: length, hash, length of the words
	firstPart = 1024 // bytes sent before the receiver knows the length of the message
)

func (m *meeting) init(g *group) {
	size := g.size
	m.each, m.theirs, m.all = make([][]byte, size), make([][]byte, size), make([][]byte, size)
	m.out, m.rests = newBatch(nil), newBatch(nil)
	var heads []message
	for r := range size {
		if m.theirs[r] = make([]byte, firstPart); r != g.me {
			head := g.message(r, tagHead)
			head.data, head.size = unsafe.Pointer(&m.theirs[r][0]), firstPart
			heads = append(heads, head)
		}
	}
	m.heads = newBatch(heads)
}

// message returns a message between this rank and another, without memory.
func (g *group) message(r, tag int) message { return message{peer: g.numbers[r], tag: g.tags[r] + tag} }

// note adds a call to the hash of all calls.
func (g *group) note(call string, senders int) {
	g.calls = g.calls*1099511628211 + xxh3.HashStringSeed(call, uint64(senders))
	g.last = call
}

// meetAs sends every rank its message and returns the received messages, by rank. at names the operation in errors,
// call describes what this rank does. With same, all ranks get the same message.
func (g *group) meetAs(at, call string, message func(rank int) []byte, same bool) ([][]byte, error) {
	if err := g.failure(at); err != nil {
		return nil, err
	}
	m := &g.meeting
	before := g.last
	g.note(call, 0)
	m.mine = appendMessage(m.mine[:0], g.calls, call, message(g.me))
	for r := range g.size {
		if m.each[r] = m.mine; !same && r != g.me {
			m.each[r] = appendMessage(nil, g.calls, call, message(r))
		}
	}
	m.all[g.me] = m.mine[headSize+len(call):]
	g.sendParts()
	g.send(m.heads, len(m.heads.messages))
	if err := g.await(m.heads, at); err != nil {
		return nil, err
	}
	g.receiveRests()
	if err := g.await(m.rests, at); err != nil {
		return nil, err
	}
	if err := g.await(m.out, at); err != nil {
		return nil, err
	}
	for r := range g.size {
		if r != g.me {
			if err := g.open(r, call, before); err != nil {
				return nil, err
			}
		}
	}
	return m.all, nil
}

func appendMessage(to []byte, calls uint64, call string, body []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(headSize+len(call)+len(body)))
	to = binary.LittleEndian.AppendUint64(to, calls)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(call)))
	return append(append(to, call...), body...)
}

// sendParts sends this rank's messages.
func (g *group) sendParts() {
	m := &g.meeting
	list := m.out.messages[:0]
	for r, data := range m.each {
		if r == g.me {
			continue
		}
		first := min(len(data), firstPart)
		head, rest := g.message(r, tagHead), g.message(r, tagRest)
		head.send, head.data, head.size, rest.send = true, unsafe.Pointer(&data[0]), first, true
		list = appendParts(append(list, head), rest, data[first:])
	}
	m.out.set(list)
	g.send(m.out, len(list))
}

// receiveRests makes room for messages that are longer than their first parts.
func (g *group) receiveRests() {
	m := &g.meeting
	list := m.rests.messages[:0]
	for r, data := range m.theirs {
		if r == g.me {
			continue
		}
		size := int(binary.LittleEndian.Uint64(data))
		if size > len(data) {
			data = slices.Grow(data, size-len(data))[:size]
			m.theirs[r] = data
			m.heads.of(g.numbers[r]).data = unsafe.Pointer(&data[0])
		}
		if size > firstPart {
			list = appendParts(list, g.message(r, tagRest), data[firstPart:size])
		}
	}
	m.rests.set(list)
	g.send(m.rests, len(list))
}

// open splits a message into its fields, and compares the calls of its sender with those of this rank.
func (g *group) open(r int, call, before string) error {
	data := g.meeting.theirs[r]
	size := int(binary.LittleEndian.Uint64(data))
	calls, words := binary.LittleEndian.Uint64(data[8:]), int(binary.LittleEndian.Uint32(data[16:]))
	g.meeting.all[r] = data[headSize+words : size]
	if calls == g.calls {
		return nil
	}
	e := &comm.MismatchError{
		Rank: g.info.Rank, Other: g.numbers[r], Mine: call, Theirs: string(data[headSize : headSize+words]),
	}
	if e.Mine == e.Theirs {
		e.Mine, e.Theirs = "has called "+before, "has made another call"
	}
	g.fail(g.info.Rank, e)
	return e
}

// appendParts appends messages of data, cut where it is longer than a message can be.
func appendParts(list []message, m message, data []byte) []message {
	for len(data) > 0 {
		m.data, m.size = unsafe.Pointer(&data[0]), min(len(data), most)
		list, data = append(list, m), data[m.size:]
	}
	return list
}

// set changes the messages of a batch that is not in flight.
func (b *batch) set(list []message) {
	if b.messages = list; len(list) > len(b.arrived) {
		grown := newBatch(list)
		b.memory, b.requests, b.statuses = grown.memory, grown.requests, grown.statuses
		b.indices, b.arrived = grown.indices, grown.arrived
	}
}

// of returns the message of a peer.
func (b *batch) of(peer int) *message {
	i := slices.IndexFunc(b.messages, func(m message) bool { return m.peer == peer })
	return &b.messages[i]
}
