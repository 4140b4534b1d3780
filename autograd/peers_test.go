package autograd

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"anneal/tensor"
)

// A testGroup is where the ranks of a test exchange tensors.
type testGroup struct {
	mu      sync.Mutex
	changed sync.Cond
	out     [][]tensor.Tensor
	arrived int
	round   int
	failed  any // what a rank panicked with
}

// A testPeer is one rank of a testGroup.
type testPeer struct {
	*testGroup
	me      int
	inPlace bool
	calls   []int64 // bytes sent in each exchange
}

func (p *testPeer) Rank() int     { return p.me }
func (p *testPeer) Size() int     { return len(p.out) }
func (p *testPeer) InPlace() bool { return p.inPlace }

func (p *testPeer) Exchange(out, room []tensor.Tensor) (in []tensor.Tensor) {
	sent := int64(0)
	for r := range out {
		if r != p.me && !out[r].IsZero() {
			sent += int64(out[r].Bytes())
		}
	}
	p.calls = append(p.calls, sent)
	p.out[p.me] = slices.Clone(out)
	p.wait()
	for r, list := range p.out {
		came := list[p.me]
		if r != p.me && !p.inPlace && !came.IsZero() {
			if room[r].DType() != came.DType() || !slices.Equal(room[r].Shape(), came.Shape()) {
				panic(fmt.Sprintf("rank %d has room for %v from rank %d, which sends %v", p.me, &room[r], r, &came))
			}
			copy(room[r].Raw(), came.Raw())
			came = room[r]
		}
		in = append(in, came)
	}
	return in
}

func (p *testPeer) Release() { p.wait() }

// wait returns when all ranks are here, and panics when one never will be.
func (m *testGroup) wait() {
	m.mu.Lock()
	defer m.mu.Unlock()
	round := m.round
	if m.arrived++; m.arrived == len(m.out) {
		m.arrived, m.round = 0, m.round+1
		m.changed.Broadcast()
	}
	for m.round == round && m.failed == nil {
		m.changed.Wait()
	}
	if m.round == round {
		panic(fmt.Sprint("another rank failed: ", m.failed))
	}
}

// meet runs f on n ranks at once, each with a tape of its own whose temporary memory is full of NaN.
func meet(t *testing.T, n int, inPlace bool, f func(r *rig, p *testPeer)) {
	t.Helper()
	m := &testGroup{out: make([][]tensor.Tensor, n)}
	m.changed.L = &m.mu
	var all sync.WaitGroup
	for rank := range n {
		r, p := newRig(t), &testPeer{testGroup: m, me: rank, inPlace: inPlace}
		r.Context = p
		spoil(r.temp)
		all.Go(func() {
			defer func() {
				if x := recover(); x != nil {
					m.mu.Lock()
					defer m.mu.Unlock()
					if m.failed == nil {
						m.failed = x
						t.Errorf("rank %d: %v", rank, x)
					}
					m.changed.Broadcast()
				}
			}()
			f(r, p)
		})
	}
	all.Wait()
}

// spoil fills the first megabyte of memory with NaN: what is used of it must be written first.
func spoil(a *tensor.Arena) {
	x := a.New(tensor.U8, 1<<20)
	for i := range x.Raw() {
		x.Raw()[i] = 0xff
	}
	a.Release(0)
}
