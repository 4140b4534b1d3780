package checkpoint

import "anneal/tensor"

// room is memory for a snapshot, kept from save to save. It is outside the Go heap, which would otherwise be allowed to
// fill with as many bytes of garbage. The zero value has none.
type room struct{ arena *tensor.Arena }

// take returns n bytes, whose contents are undefined. Those of the call before are gone.
func (r *room) take(n int) ([]byte, error) {
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

// size returns how many bytes there are.
func (r *room) size() int {
	if r.arena == nil {
		return 0
	}
	return r.arena.Size()
}

// close frees the memory.
func (r *room) close() error {
	if r.arena == nil {
		return nil
	}
	err := r.arena.Close()
	r.arena = nil
	return err
}
