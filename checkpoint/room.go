package checkpoint

import (
	"runtime"
	"sync/atomic"

	"anneal/tensor"
)

// room is memory for a snapshot, kept from save to save. It is outside the Go heap, which would otherwise be allowed to
// fill with as many bytes of garbage. The zero value has none.
type room struct {
	arena   *tensor.Arena
	enough  atomic.Bool   // touching may stop
	touched chan struct{} // closed when touching has ended; nil if it never began
}

// reserve makes the room n bytes large and touches them in the background, so that the system provides them before
// they are needed. If there is too little memory, take reports it.
func (r *room) reserve(n int) {
	memory, err := r.take(n)
	if err != nil || n == 0 {
		return
	}
	touched := make(chan struct{})
	r.touched = touched
	r.enough.Store(false)
	go func() {
		defer close(touched)
		const page, some = 4 << 10, 2 << 20
		for at := 0; at < len(memory) && !r.enough.Load(); at += page {
			memory[at] = 0
			if at%some == 0 {
				runtime.Gosched() // goroutines that compute come first
			}
		}
	}()
}

// settle waits until no goroutine touches the memory in the background.
func (r *room) settle() {
	if r.touched != nil {
		r.enough.Store(true)
		<-r.touched
		r.touched = nil
	}
}

// take returns n bytes with undefined contents. It invalidates the bytes of the previous call.
func (r *room) take(n int) ([]byte, error) {
	r.settle()
	if n == 0 {
		return nil, nil
	}
	if r.size() < n {
		if err := r.close(); err != nil {
			return nil, err
		}
		a, err := tensor.NewArena("the snapshot", n)
		if err != nil {
			return nil, err
		}
		r.arena = a
	}
	r.arena.Release(0)
	t := r.arena.New(tensor.U8, n)
	return t.Raw(), nil
}

// size returns the number of bytes in the room.
func (r *room) size() int {
	if r.arena == nil {
		return 0
	}
	return r.arena.Size()
}

// close frees the memory.
func (r *room) close() error {
	r.settle()
	if r.arena == nil {
		return nil
	}
	err := r.arena.Close()
	r.arena = nil
	return err
}
