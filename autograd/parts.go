package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Parts describes the whole rows of a batch to attention, for a rank of context parallelism that has two chunks of
// each row.
type Parts struct {
	// Mask has the length of whole rows, and the start of every token's document [rows·T].
	Mask device.Mask
	Zigzag

	start tensor.Tensor // of Mask
	host  []int32       // what it is sent from
	hops  [][]*frame    // of ring attention: the frames for the keys of each rank, beginning with this rank's
}

// NewParts allocates the parts of a micro-batch of whole rows, for RingAttention if ring is true, else for Ulysses.
// alibi says whether scores depend on distances (device.Mask.Slopes).
func NewParts(mem *tensor.Arena, z Zigzag, rows int, ring, alibi bool) *Parts {
	p := &Parts{Zigzag: z}
	p.start, p.host = integersIn(mem, rows*z.Len)
	p.Mask = device.Mask{Len: z.Len, Start: &p.start}
	for hop := range z.Ranks {
		if !ring {
			break
		}
		list := z.frames((z.Rank-hop+z.Ranks)%z.Ranks, alibi)
		for _, f := range list {
			f.start, f.host = integersIn(mem, rows*f.len())
		}
		p.hops = append(p.hops, list)
	}
	return p
}

// integersIn allocates n integers. It also returns host memory for them: the integers themselves if the host can
// access them, nil if the arena has no memory.
func integersIn(mem *tensor.Arena, n int) (t tensor.Tensor, host []int32) {
	t = mem.New(tensor.I32, n)
	switch {
	case mem.Apart():
		host = make([]int32, n)
	case mem.Backed():
		host = t.I32()
	}
	return t, host
}

// Fill sets the position in its row at which the document of each token of the micro-batch begins, [rows·T].
func (p *Parts) Fill(start []int32) {
	copy(p.host, start)
	for _, list := range p.hops {
		for _, f := range list {
			f.fill(start, p.Len)
		}
	}
}

// Send copies the positions from Fill to the device.
func (p *Parts) Send(m device.Memory) {
	if !p.start.Apart() {
		return
	}
	m.Write(&p.start, tensor.Of(p.host).Raw())
	for _, list := range p.hops {
		for _, f := range list {
			m.Write(&f.start, tensor.Of(f.host).Raw())
		}
	}
}

// frames returns the frames that this rank computes with the keys of another rank: its two chunks of queries against
// the chunks before them. Under ALiBi each frame has keys of one chunk, so that the distance it leaves out is the same
// for all keys.
func (z Zigzag) frames(from int, alibi bool) []*frame {
	size, mine, theirs := z.Chunk(), z.Chunks(), z.of(from)
	switch {
	case from == z.Rank && alibi:
		return []*frame{newFrame(size, mine[:1], mine[:]), newFrame(size, mine[1:], mine[1:])}
	case from == z.Rank:
		return []*frame{newFrame(size, mine[:], mine[:])}
	case from < z.Rank:
		return []*frame{newFrame(size, theirs[:1], mine[:])}
	case alibi:
		return []*frame{newFrame(size, theirs[:1], mine[1:]), newFrame(size, theirs[1:], mine[1:])}
	}
	return []*frame{newFrame(size, theirs[:], mine[1:])}
}

// A Call describes a call of attention: the number of tokens, in rows of Mask.Len.
type Call struct {
	Tokens int
	Heads  device.Heads
	Mask   device.Mask
}

// Calls returns the calls of attention that a rank makes for the heads and the mask of whole rows: the calls of all
// hops if the parts are for ring attention; one call, that of Ulysses, otherwise and for linear attention.
func (p *Parts) Calls(h device.Heads, mask device.Mask, linear bool) (list []Call) {
	tokens := p.start.Len()
	mask.Len, mask.Start = p.Len, nil
	if p.hops == nil || linear {
		s := shareOf(h, p.Rank, p.Ranks)
		return []Call{{tokens, s.Heads, s.mask(mask)}}
	}
	for _, frames := range p.hops {
		for _, f := range frames {
			if l, sees := f.layout(mask.Layout); sees {
				m := device.Mask{Len: f.len(), Layout: l, Slopes: mask.Slopes}
				list = append(list, Call{tokens / p.Len * f.len(), h, m})
			}
		}
	}
	return list
}
