//go:build mpi && linux

package mpi

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"

	"anneal/comm"
	"anneal/tensor"
)

// transfer implements comm.Transfer. Messages from one rank to another with the same tag arrive in the order in which
// they are sent, and all ranks start the transfers of a group in the same order, so these may take turns with tags.
type transfer struct {
	group *group
	name  string
	tag   int
	out   [][]tensor.Tensor
	room  [][]tensor.Tensor
	in    *batch
	upTo  []int // the number of messages in it from ranks below each
	sends *batch

	receiving bool // between Start and Wait
	reading   bool // between Wait and Release
	sending   bool // between Start and Sent
}

// NewExchange implements comm.Comm. It compares the tensors that ranks send with the room for them, so it waits for
// all ranks.
func (g *group) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	t := &transfer{
		group: g, name: name, tag: tagFirst + g.exchanges%transferTag, upTo: make([]int, g.size+1),
		in: newBatch(nil), sends: newBatch(nil),
	}
	g.exchanges++
	g.spare.Do(spare)
	t.set(out, room)
	t.compare()
	return t
}

// Set implements comm.Transfer.
func (t *transfer) Set(out, room [][]tensor.Tensor) {
	g := t.group
	if g.failure(t.name) != nil {
		return
	}
	switch {
	case t.receiving || t.reading:
		t.early("sets", "it has released what came before")
	case t.sending:
		t.early("sets", "Sent")
	default:
		g.note(t.name, -1)
		t.set(out, room)
	}
}

// early ends all groups because this rank does something too early.
func (t *transfer) early(does, before string) {
	me := t.group.info.Rank
	t.group.fail(me, fmt.Errorf("rank %d %s %s before %s", me, does, t.name, before))
}

// set lists the messages of the tensors to send and to receive.
func (t *transfer) set(out, room [][]tensor.Tensor) {
	g := t.group
	t.out, t.room = comm.Keep(t.out, out), comm.Keep(t.room, room)
	in, sends := t.in.messages[:0], t.sends.messages[:0]
	for r := range g.size {
		if t.upTo[r] = len(in); r == g.me {
			continue
		}
		m := g.message(r, t.tag)
		m.full = true
		in = g.appendTensors(in, m, t.name, t.room[r])
		m.full, m.send = false, true
		sends = g.appendTensors(sends, m, t.name, t.out[r])
	}
	t.upTo[g.size] = len(in)
	t.in.set(in)
	t.sends.set(sends)
}

// spare raises GOMAXPROCS by one for the thread of the library. The device counted the processors that compute when it
// was opened; without another one, the thread would wait for one of them.
func spare() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) }

// appendTensors appends the messages of tensors.
func (g *group) appendTensors(list []message, m message, name string, tensors []tensor.Tensor) []message {
	for i := range tensors {
		if tensors[i].Apart() {
			g.fail(g.info.Rank, fmt.Errorf("%s: MPI sends from and to the host's memory only: use device: cpu", name))
			return list
		}
		list = appendParts(list, m, tensors[i].Raw())
	}
	return list
}

// compare checks that every rank has room for the tensors that the others send.
func (t *transfer) compare() {
	g := t.group
	all, err := g.meetAs(t.name, "prepares "+t.name, func(r int) []byte { return shapes(t.out[r]) }, false)
	if err != nil {
		return // and so does every later call
	}
	for r, sent := range all {
		if room := shapes(t.room[r]); r != g.me && string(room) != string(sent) {
			g.fail(g.info.Rank, &comm.MismatchError{
				Rank: g.info.Rank, Other: g.numbers[r],
				Mine: fmt.Sprintf("has room for %s in %s", describe(room), t.name), Theirs: "sends " + describe(sent),
			})
			return
		}
	}
}

const shapeSize = 9 // bytes of a tensor in a list of shapes: its length and its dtype

// shapes lists the lengths and dtypes of tensors.
func shapes(list []tensor.Tensor) (all []byte) {
	for i := range list {
		all = append(binary.LittleEndian.AppendUint64(all, uint64(list[i].Len())), byte(list[i].DType()))
	}
	return all
}

// describe puts a list of shapes in words.
func describe(shapes []byte) string {
	var all []string
	for ; len(shapes) >= shapeSize; shapes = shapes[shapeSize:] {
		length, dtype := binary.LittleEndian.Uint64(shapes), tensor.DType(shapes[shapeSize-1])
		all = append(all, fmt.Sprintf("%d of %v", length, dtype))
	}
	if len(all) == 0 {
		return "no tensors"
	}
	return strings.Join(all, ", ")
}

// Start implements comm.Transfer.
func (t *transfer) Start(senders int) {
	g := t.group
	if g.failure(t.name) != nil {
		return
	}
	if t.receiving || t.reading {
		t.early("starts", "it has released what came before")
		return
	}
	g.note(t.name, senders+1)
	t.receiving = true
	g.send(t.in, t.upTo[min(senders, g.size)])
	if g.me < senders && t.Sent() == nil {
		t.sending = true
		g.send(t.sends, len(t.sends.messages))
	}
}

// Wait implements comm.Transfer.
func (t *transfer) Wait() error {
	if !t.receiving {
		return t.group.failure(t.name)
	}
	t.receiving = false
	err := t.group.await(t.in, t.name)
	t.reading = err == nil
	return err
}

// From implements comm.Transfer.
func (t *transfer) From(r int) []tensor.Tensor {
	if r == t.group.me {
		return t.out[r]
	}
	return t.room[r]
}

// Release implements comm.Transfer.
func (t *transfer) Release() { t.reading = false }

// Sent implements comm.Transfer.
func (t *transfer) Sent() error {
	if !t.sending {
		return t.group.failure(t.name)
	}
	t.sending = false
	return t.group.await(t.sends, t.name)
}
