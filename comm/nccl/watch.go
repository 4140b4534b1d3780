//go:build cuda && linux

package nccl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"anneal/comm"
	"anneal/device/cuda"
	"anneal/tensor"
)

// watch repeats the transfers of a group among the hosts, in the order in which they are queued on the card. So it
// knows which rank is missing, and whether a card does not finish a transfer that all ranks have started.
type watch struct {
	group *group
	told  comm.Transfer // hashes of the tensors that ranks send
	mine  [][]tensor.Tensor
	queue chan *started
	spare chan *started // that can be used again
	over  chan struct{} // closed when it has ended
}

// started is a transfer that has been started.
type started struct {
	name        string
	senders     int
	sent, comes []uint64
	mark        cuda.Mark // its end on the card
}

// ahead is the number of transfers that a rank may have in flight in a group before Start waits.
const ahead = 256

func newWatch(g *group) (*watch, error) {
	w := &watch{
		group: g, queue: make(chan *started, ahead+1), spare: make(chan *started, ahead), over: make(chan struct{}),
	}
	for range ahead {
		mark, err := g.newMark()
		if err != nil {
			return nil, err
		}
		w.spare <- &started{mark: mark, sent: make([]uint64, g.Size()), comes: make([]uint64, g.Size())}
	}
	room := make([][]tensor.Tensor, g.Size())
	for r := range g.Size() {
		w.mine = append(w.mine, []tensor.Tensor{tensor.View(tensor.U8, make([]byte, 8), 8)})
		room[r] = []tensor.Tensor{tensor.View(tensor.U8, make([]byte, 8), 8)}
	}
	w.told = g.control.NewExchange("what ranks "+g.names()+" send", w.mine, room)
	go w.run()
	return w, nil
}

// add starts watching a transfer that was just queued.
func (w *watch) add(t *transfer, senders int) {
	select {
	case s := <-w.spare:
		s.name, s.senders = t.name, senders
		copy(s.sent, t.sent)
		copy(s.comes, t.comes)
		w.group.side.Set(s.mark)
		w.queue <- s // there is room for all
	case <-w.over:
	}
}

// end waits until all started transfers are complete on this rank, and ends the watch. The watch may have ended
// before.
func (w *watch) end() {
	select {
	case w.queue <- nil:
		<-w.over
	case <-w.over:
	}
}

// run is the loop of the watch.
func (w *watch) run() {
	defer close(w.over)
	idle := time.NewTicker(100 * time.Millisecond)
	defer idle.Stop()
	for {
		var err error
		select {
		case s := <-w.queue:
			if s == nil {
				return
			}
			if err = w.follow(s); err == nil {
				w.spare <- s
			}
		case <-idle.C:
			err = w.ended()
		}
		if err != nil {
			w.group.lose(err)
			return
		}
	}
}

// follow waits until a transfer is complete.
func (w *watch) follow(s *started) error {
	g := w.group
	for r, list := range w.mine {
		binary.LittleEndian.PutUint64(list[0].Raw(), s.sent[r])
	}
	w.told.Start(s.senders)
	if err := w.told.Wait(); err != nil {
		return named(err, s.name)
	}
	for r := range min(s.senders, g.Size()) {
		if theirs := binary.LittleEndian.Uint64(w.told.From(r)[0].Raw()); r != g.Rank() && theirs != s.comes[r] {
			return &comm.MismatchError{
				Rank: g.me, Other: g.numbers[r], Mine: "has room for other tensors in " + s.name, Theirs: "sends",
			}
		}
	}
	w.told.Release()
	if err := w.told.Sent(); err != nil {
		return named(err, s.name)
	}
	return w.finish(s)
}

// finish waits until the card has completed a transfer that all ranks have started.
func (w *watch) finish(s *started) error {
	g := w.group
	pause := time.Microsecond
	for begun := time.Now(); ; {
		if done, err := g.side.Occurred(s.mark); err != nil {
			return g.mine(s.name, err)
		} else if done {
			return nil
		}
		if err := w.ended(); err != nil {
			return g.mine(s.name, err)
		}
		if time.Since(begun) > g.timeout {
			return &comm.LostError{
				Rank: -1, At: s.name, For: g.timeout, Err: fmt.Errorf("a card has not finished for %v", g.timeout),
			}
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
}

// ended returns why the groups have ended, here or on other ranks, or the error of the card.
func (w *watch) ended() error {
	if err := w.told.Sent(); err != nil {
		return err
	}
	g := w.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || g.handle == 0 {
		return g.err
	}
	return g.library.failed(g.handle)
}

// named adds the name of the transfer to an error of the other group.
func named(err error, name string) error {
	var lost *comm.LostError
	if !errors.As(err, &lost) {
		return err
	}
	mine := *lost
	mine.At = name
	return &mine
}
