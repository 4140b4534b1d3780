package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// passes runs forward passes for generation: over new tokens of one sequence or of several at a time. It owns their
// memory.
type passes struct {
	model  *Decoder
	policy precision.Policy
	tape   *autograd.Tape
	batch  *tensor.Arena
	arenas []*tensor.Arena
	caches []*autograd.Cache // one per sequence; none without caches

	copied []copied // matrices whose copies save time; see copyWeights
	list   []*autograd.Cache
	next   extension
}

// A Stretch is the new tokens of one sequence in a pass.
type Stretch struct {
	Slot   int     // the slot whose cache holds the tokens before First
	IDs    []int32 // the sequence, up to the last of the new tokens
	First  int     // position of the first new token
	Logits int     // how many of the last new tokens need logits
}

// tokens returns the number of new tokens.
func (s *Stretch) tokens() int { return len(s.IDs) - s.First }

// newPasses allocates the memory of passes with at most tokens tokens and logits rows of logits, and one cache per
// slot.
func newPasses(m *Decoder, p precision.Policy, dev device.Device, slots, tokens, logits int) (*passes, error) {
	f := measurePasses(m.Config, p, slots, tokens, logits)
	x := &passes{model: m, policy: p}
	if slots > 0 {
		x.copied = m.copiedFor(p, dev)
	}
	for _, need := range []struct {
		name string
		size int
	}{
		{"activations", f.Keep}, {"scratch", f.Temp}, {"batch", f.Batch}, {"keys and values", f.Cache},
		{"copies of weights", copyBytes(x.copied)},
	} {
		a, err := dev.NewArena(need.name, need.size)
		if err != nil {
			x.Close()
			return nil, err
		}
		x.arenas = append(x.arenas, a)
	}
	x.tape = autograd.NewTape(dev, p.Types(), x.arenas[0], x.arenas[1])
	x.tape.Rounded = m.eight
	x.batch = x.arenas[2]
	for range slots {
		x.caches = append(x.caches, m.newCache(p, x.arenas[3]))
	}
	return x, nil
}

// Bytes returns the memory of the passes, and how much of it is keys and values.
func (x *passes) Bytes() (all, cache int) {
	for _, a := range x.arenas {
		all += a.Size()
	}
	return all, x.arenas[3].Size()
}

// Close frees the memory of the passes, but not the model's.
func (x *passes) Close() {
	for _, a := range x.arenas {
		a.Close()
	}
	x.arenas = nil
}

// copyWeights makes the copies of matrices, for passes whose time goes mostly into reading matrices.
func (x *passes) copyWeights() {
	if x.tape.Rounded == nil {
		x.tape.Rounded = makeCopies(x.arenas[4], x.tape.Device, x.copied)
	}
}

// run passes the new tokens of all stretches through the model. It returns the logits [R, V] that the stretches ask
// for, in their order; nil if there are none.
func (x *passes) run(list []Stretch) *tensor.Tensor {
	x.batch.Release(0)
	x.tape.Reset(false)
	tokens, logits := 0, 0
	x.list = x.list[:0]
	for i := range list {
		s := &list[i]
		tokens, logits = tokens+s.tokens(), logits+s.Logits
		if len(x.caches) > 0 {
			c := x.caches[s.Slot]
			if c.First, c.Tokens = s.First, s.tokens(); s.First > 0 {
				c.Before = s.IDs[s.First-1]
			}
			x.list = append(x.list, c)
		}
	}
	x.next.lay(x.batch, x.policy, tokens, logits, x.list)
	x.next.fill(list)
	x.next.send(x.tape.Device)
	return x.model.extend(x.tape, &x.next)
}

// An extension is a batch of the new tokens of sequences. The host fills hostRows, and calls send.
type extension struct {
	b        *Batch
	rows     tensor.Tensor // [R] I32: the tokens whose logits are wanted; the zero tensor if there are none
	hostRows []int32       // the same in host memory
}

// lay takes memory for an extension of the given numbers of tokens and rows of logits.
func (e *extension) lay(a *tensor.Arena, p precision.Policy, tokens, logits int, caches []*autograd.Cache) {
	*e = extension{b: NewBatch(a, p, 1, tokens)}
	if len(caches) > 0 {
		e.b.Seq.Caches, e.b.Seq.Mask = caches, device.Mask{}
	}
	if logits == 0 {
		return
	}
	e.rows = a.New(tensor.I32, logits)
	switch {
	case a.Apart():
		e.hostRows = make([]int32, logits)
	case a.Backed():
		e.hostRows = e.rows.I32()
	}
}

// fill writes tokens, positions and the rows of logits.
func (e *extension) fill(list []Stretch) {
	at, row := 0, 0
	for i := range list {
		s := &list[i]
		n := copy(e.b.Host.Tokens[at:], s.IDs[s.First:])
		for j := range n {
			e.b.Host.Pos[at+j] = int32(s.First + j)
		}
		clear(e.b.Host.Start[at : at+n])
		at += n
		for j := range s.Logits {
			e.hostRows[row+j] = int32(at - s.Logits + j)
		}
		row += s.Logits
	}
}

// send copies the host's elements to the device.
func (e *extension) send(m device.Memory) {
	e.b.Send(m)
	if len(e.hostRows) > 0 && e.rows.Apart() {
		m.Write(&e.rows, tensor.Of(e.hostRows).Raw())
	}
}

// extend runs an extension and returns its logits [R, V]; nil if none are wanted.
func (m *Decoder) extend(t *autograd.Tape, e *extension) *tensor.Tensor {
	h := m.Forward(t, &e.b.Tokens, &e.b.Seq) // [N, D]
	if e.rows.IsZero() {
		return nil
	}
	return t.LogitsOf(h, &m.head.Param, &e.rows, m.Config.LogitSoftcap)
}

// measurePasses returns the exact footprint of passes, by running their code on a device that does not compute.
func measurePasses(c Config, p precision.Policy, slots, tokens, logits int) Footprint {
	keep, temp := tensor.NewMeasure("activations"), tensor.NewMeasure("scratch")
	batch, kv := tensor.NewMeasure("batch"), tensor.NewMeasure("keys and values")
	m := Outline(c, p)
	var caches []*autograd.Cache
	for range slots {
		caches = append(caches, m.newCache(p, kv))
	}
	if slots > 0 {
		caches = caches[:1]
		caches[0].Tokens = tokens
	}
	t := autograd.NewTape(device.Null{}, p.Types(), keep, temp)
	t.Reset(false)
	var e extension
	e.lay(batch, p, tokens, logits, caches)
	m.extend(t, &e)
	return Footprint{Keep: keep.Peak(), Temp: temp.Peak(), Batch: batch.Peak(), Cache: kv.Peak()}
}
