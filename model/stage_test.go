package model

import (
	"bytes"
	"testing"

	"anneal/autograd"
	"anneal/precision"
	"anneal/tensor"
)

// stage is a part of a model with the tapes of the micro-batches that are between its forward and its backward.
type stage struct {
	*bench
	from, to int // units
	tapes    map[int]*autograd.Tape
	in, out  map[int]*autograd.Var
}

func newStage(t *testing.T, x *bench, policy string, from, to int) *stage {
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{x, from, to, map[int]*autograd.Tape{}, map[int]*autograd.Var{}, map[int]*autograd.Var{}}
	temp := arenaOf(t, 4*x.foot.Temp) // shared by all
	for i := range 3 {
		s.tapes[i] = autograd.NewTape(x.dev, p.Types(), arenaOf(t, x.foot.Keep), temp)
	}
	return s
}

func arenaOf(t *testing.T, size int) *tensor.Arena {
	a, err := tensor.NewArena("test", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// forward runs micro-batch i of batch b, from the stream x of the stage before.
func (s *stage) forward(i int, b *Batch, x *tensor.Tensor) {
	tape := s.tapes[i]
	tape.Reset(true)
	if s.from == 0 {
		s.in[i] = s.m.Embed(tape, &b.Tokens, &b.Seq)
	} else {
		s.in[i] = tape.Begin(x)
	}
	v := s.in[i]
	for u := s.from; u < s.to; u++ {
		v = s.m.Unit(tape, u, v, &b.Seq)
	}
	s.out[i] = v
	if s.to == s.m.Units() {
		s.m.HeadLoss(tape, s.m.Finish(tape, v), b)
	}
}

// backward goes back through micro-batch i from the gradient g of the stream after the stage, and returns that before.
func (s *stage) backward(i int, g *tensor.Tensor) *tensor.Tensor {
	tape := s.tapes[i]
	if s.to < s.m.Units() {
		tape.SetGradient(s.out[i], g)
	}
	tape.BackTo(0)
	return tape.Gradient(s.in[i])
}

// Two stages, with several micro-batches under way in an order in which what their tapes keep does not nest, make the
// gradients of the whole model.
func TestStagesOnTapesOfTheirOwnAreTheModel(t *testing.T) {
	for _, policy := range []string{"bf16", "fp32", "fp64"} {
		for _, recompute := range []Layout{{}, {Whole: 2, Segment: 1}, {Attention: 4}} {
			c := small
			c.Layers, c.TieEmbeddings, c.Dropout, c.StochasticDepth, c.Recompute = 4, false, 0.1, 0.3, recompute
			x := newBench(t, c, policy, 2, 8)
			p, _ := precision.Lookup(policy)
			memory := arenaOf(t, 4*x.foot.Batch)
			var batches []*Batch
			for i := range 3 {
				b := NewBatch(memory, p, 2, 8)
				copy(b.Tokens.I32(), x.b.Tokens.I32())
				copy(b.Targets.I32(), x.b.Targets.I32())
				b.Tokens.I32()[i] = int32(7 * i)
				b.SetPositions(false)
				b.Seq.Noise = autograd.Noise{Seed: 3, Step: 1, Row: i * 16}
				batches = append(batches, b)
			}
			for _, b := range batches {
				x.tape.Reset(true)
				x.m.Loss(x.tape, b)
				x.tape.Backward()
			}
			want := gradients(x)
			first, last := newStage(t, x, policy, 0, 2), newStage(t, x, policy, 2, x.m.Units())
			g := map[int]*tensor.Tensor{}
			next := func(i int) {
				last.forward(i, batches[i], &first.out[i].Value)
				g[i] = last.backward(i, nil)
			}
			first.forward(0, batches[0], nil)
			next(0)
			first.forward(1, batches[1], nil)
			first.backward(0, g[0])
			next(1)
			first.forward(2, batches[2], nil)
			first.backward(1, g[1])
			next(2)
			first.backward(2, g[2])
			for i, p := range x.m.Params() {
				if !bytes.Equal(p.Grad.Raw(), want[i]) {
					t.Errorf("%s, %+v: the gradient of %s differs", policy, recompute, p.Name)
				}
			}
		}
	}
}

// gradients returns the bytes of all gradients, and begins new ones.
func gradients(x *bench) (list [][]byte) {
	for _, p := range x.m.Params() {
		list = append(list, bytes.Clone(p.Grad.Raw()))
		p.ResetGrad()
	}
	return list
}
