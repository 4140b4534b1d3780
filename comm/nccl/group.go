//go:build cuda && linux

package nccl

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"anneal/comm"
	"anneal/device"
	"anneal/device/cuda"
	"anneal/tensor"
)

// Join returns a group of the same ranks that sends tensors from card to card. All ranks call it, each with its own
// card. Join returns boot itself if the device is not a card, or if there is only one rank. A rank waits for another
// for at most timeout; 0 means ten minutes. Close the group before the card; boot stays open.
func Join(boot comm.Comm, dev device.Device, timeout time.Duration) (comm.Comm, error) {
	card, ok := dev.(*cuda.Device)
	if !ok || boot.Size() == 1 {
		return boot, nil
	}
	if err := apart(boot, card); err != nil {
		return nil, err
	}
	lib, err := openLibrary()
	if err != nil {
		return nil, err
	}
	if timeout == 0 {
		timeout = 10 * time.Minute
	}
	w := &world{card: card, library: lib, timeout: timeout, me: boot.Rank(), over: make(chan struct{})}
	numbers := make([]int, boot.Size())
	for r := range numbers {
		numbers[r] = r
	}
	return w.newGroup(boot, numbers)
}

// apart returns an error if two ranks of a process have the same card. It does not compare ranks of different
// processes, which may each see only one card.
func apart(boot comm.Comm, card *cuda.Device) error {
	host, _ := os.Hostname()
	all, err := boot.Share(fmt.Appendf(nil, "%s %d %d", host, os.Getpid(), card.Index()))
	if err != nil {
		return err
	}
	first := map[string]int{} // the ranks by their cards
	for r, at := range all {
		if other, taken := first[string(at)]; taken {
			return fmt.Errorf("ranks %d and %d have the same GPU, number %d, but each needs its own\n"+
				"  let this process see more of them (CUDA_VISIBLE_DEVICES), or have fewer ranks",
				other, r, card.Index())
		}
		first[string(at)] = r
	}
	return nil
}

// world is the state that all groups of this rank share.
type world struct {
	card    *cuda.Device
	library *library
	timeout time.Duration
	me      int

	mu     sync.Mutex
	groups []*group
	err    error         // why the groups ended, or nil
	over   chan struct{} // closed when they have
}

// group is a group of ranks with cards.
type group struct {
	*world
	comm.Comm           // the same ranks, for messages
	control   comm.Comm // and for the watch
	numbers   []int     // of its ranks in the world

	side   *cuda.Side
	handle uintptr // of NCCL's communicator, 0 before the first NewExchange and after the end
	marks  []cuda.Mark
	first  *tensor.Arena // of the first transfer
	left   bool          // a goroutine may wait for ever for the first transfer
	watch  *watch
}

func (w *world) newGroup(boot comm.Comm, numbers []int) (*group, error) {
	all := make([]int, boot.Size())
	for r := range all {
		all[r] = r
	}
	control, err := boot.Group(all)
	if err != nil {
		return nil, err
	}
	g := &group{world: w, Comm: boot, control: control, numbers: numbers}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = append(w.groups, g)
	return g, nil
}

// InPlace implements comm.Comm.
func (g *group) InPlace() bool { return false }

// Share implements comm.Comm.
func (g *group) Share(mine []byte) ([][]byte, error) {
	if err := g.failure("the exchange of messages"); err != nil {
		return nil, err
	}
	return g.Comm.Share(mine)
}

// Group implements comm.Comm.
func (g *group) Group(ranks []int) (comm.Comm, error) {
	boot, err := g.Comm.Group(ranks)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, len(ranks))
	for i, r := range ranks {
		numbers[i] = g.numbers[r]
	}
	return g.newGroup(boot, numbers)
}

// newMark creates a mark that is freed with the group.
func (g *group) newMark() (cuda.Mark, error) {
	m, err := g.side.NewMark()
	g.marks = append(g.marks, m)
	return m, err
}

// Abort implements comm.Comm.
func (g *group) Abort(err error) {
	g.fail(g.mine("its own work", err))
	g.Comm.Abort(err)
}

// mine is the error of this rank.
func (w *world) mine(at string, err error) error {
	if mismatch := (*comm.MismatchError)(nil); errors.As(err, &mismatch) {
		return err
	}
	if lost := (*comm.LostError)(nil); errors.As(err, &lost) {
		return err
	}
	return &comm.LostError{Rank: w.me, At: at, Err: err}
}

// fail ends the work of all groups on this card. The first reason counts.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.over)
	}
	for _, g := range w.groups {
		if g.handle != 0 {
			w.library.abort(g.handle)
			g.handle = 0
		}
	}
}

// failure is the error of a call after the groups have ended; nil if they have not.
func (w *world) failure(at string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return nil
	}
	var lost *comm.LostError
	if !errors.As(w.err, &lost) {
		return w.err
	}
	mine := *lost
	if mine.For == 0 && mine.Rank != w.me {
		mine.At = at
	}
	return &mine
}

// lose ends all groups on all ranks.
func (g *group) lose(err error) {
	g.fail(err)
	g.Comm.Abort(err)
}

// Close implements comm.Comm. The world is closed for all groups.
func (g *group) Close() error {
	if g != g.groups[0] {
		return nil
	}
	for _, part := range g.groups {
		if part.watch != nil {
			part.watch.end()
		}
	}
	err := g.failure("the end")
	if err == nil {
		err = g.finish()
	}
	g.fail(errClosed)
	err = errors.Join(err, g.finish())
	for _, part := range g.groups {
		if part.left {
			continue
		}
		if part.side != nil {
			part.side.Close(part.marks)
		}
		if part.first != nil {
			err = errors.Join(err, part.first.Close())
		}
	}
	return err
}

// finish waits until no transfer of any group is in flight on this card.
func (w *world) finish() error {
	for _, part := range w.groups {
		if part.side != nil && !part.left {
			if err := part.side.Finish(); err != nil {
				return err
			}
		}
	}
	return w.card.Wait()
}

var errClosed = errors.New("the group of ranks was closed")

// names lists the ranks, for errors.
func (g *group) names() string { return fmt.Sprint(g.numbers) }
