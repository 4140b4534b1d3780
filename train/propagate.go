package train

import (
	"anneal/autograd"
	"anneal/nn"
	"anneal/parallel"
)

// chunk is a run of units that a rank computes without interruption: all units, or in a pipeline those of some layers.
type chunk struct {
	units          []int // numbers as in model.Decoder.UnitParams
	enters, leaves bool  // whether it begins with the embedding, and ends with the head
}

// layChunks lists the chunks of a rank's part of a model, and where the parameters of its units end.
func (e *Evaluator) layChunks() {
	m, end := e.model, 0
	e.chunks, e.ends = nil, nil
	for _, unit := range m.UnitParams() {
		end += len(unit)
		e.ends = append(e.ends, end)
	}
	for c := range m.Chunks() {
		x := chunk{enters: e.mesh.First() && c == 0, leaves: e.mesh.Last() && c == m.Chunks()-1}
		if x.enters {
			x.units = append(x.units, 0)
		}
		for u, end := m.Chunk(c); u < end; u++ {
			x.units = append(x.units, u+1)
		}
		if x.leaves {
			x.units = append(x.units, m.Units()+1)
		}
		e.chunks = append(e.chunks, x)
	}
}

// forward runs a chunk for the current batch, unit by unit, from the stream x [N, D], or from the embedding if the
// chunk begins with it, to the stream before the final norm. It records where units begin on the tape. A rank without
// a batch (not present) only takes part in the ranks' exchanges.
func (e *Evaluator) forward(c *chunk, x *autograd.Var, present, grad bool) (*autograd.Var, error) {
	m, tape, b, last := e.model, e.tape, e.batch, e.model.Units()+1
	e.marks = e.marks[:0]
	for i, u := range c.units {
		if u == last {
			break // finish runs it with the head, because its results are temporary
		}
		next := 0
		switch {
		case i+1 < len(c.units):
			next = c.units[i+1]
		case grad && i > 0:
			next = c.units[i-1]
		}
		if err := e.between.Need(u, next); err != nil {
			return nil, err
		}
		if !present {
			continue
		}
		e.marks = append(e.marks, tape.Mark())
		switch u {
		case 0:
			x = m.Embed(tape, &b.Tokens, &b.Seq) // [N, D]
		default:
			x = m.Unit(tape, u-1, x, &b.Seq) // [N, D]
		}
		if e.sizes != nil {
			e.sizes[u] = e.rootMeanSquare(x)
		}
	}
	return x, nil
}

// finish begins the last unit of a chunk that ends with the head: it returns the head's input, computed from the
// stream.
func (e *Evaluator) finish(c *chunk, present, grad bool) (h *autograd.Var, err error) {
	before := 0
	if n := len(c.units); grad && n > 1 {
		before = c.units[n-2]
	}
	if err := e.between.Need(0, 0); err != nil { // a tied table
		return nil, err
	}
	if err := e.between.Need(e.model.Units()+1, before); err != nil || !present {
		return nil, err
	}
	e.marks = append(e.marks, e.tape.Mark())
	return e.model.Finish(e.tape, e.out), nil // [N, D]
}

// loss computes the losses of the current batch, if there is one.
func (e *Evaluator) loss(present bool) error {
	return e.read(present, func(h *autograd.Var) { e.model.HeadLoss(e.tape, h, e.batch) })
}

// read passes the current batch, if there is one, through the model. If this rank has the end of the model, it calls
// head with the head's input [N, D].
func (e *Evaluator) read(present bool, head func(h *autograd.Var)) (err error) {
	defer parallel.Recover(&err)
	if present && e.pipe != nil {
		if err := e.pipe.reuse(e.slot); err != nil {
			return err
		}
	}
	if present {
		e.tape.Reset(false)
	}
	for i := range e.chunks {
		c := &e.chunks[i]
		if present && !c.enters {
			if err := e.pipe.receiveForward(e.slot); err != nil {
				return err
			}
		}
		if e.out, err = e.forward(c, e.in, present, false); err != nil {
			return err
		}
		switch {
		case c.leaves:
			h, err := e.finish(c, present, false)
			if err != nil {
				return err
			}
			if present {
				head(h)
			}
		case present:
			if err := e.pipe.sendForward(e.slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// propagate runs the current micro-batch, if there is one, forward and backward. With send, gradients are sent unit by
// unit. If the fingerprint is not nil, it records hashes of losses and gradients.
func (t *Trainer) propagate(present, send bool, record *fingerprint) (err error) {
	defer parallel.Recover(&err)
	if present {
		t.teach()
		t.tape.Reset(true)
	}
	if t.out, err = t.forward(&t.chunks[0], nil, present, true); err != nil {
		return err
	}
	if err := t.backward(&t.chunks[0], present, send, record); err != nil {
		return err
	}
	return t.moves.inputs.failed()
}

// backward runs a chunk backward for the current batch, from the loss if it ends with the head.
func (t *Trainer) backward(c *chunk, present, send bool, record *fingerprint) error {
	last := t.model.Units() + 1
	if c.leaves {
		t.enter(Head)
		if err := t.makeHead(c, present); err != nil {
			return err
		}
	}
	t.enter(Backward)
	for i := len(c.units) - 1; i >= 0; i-- {
		u := c.units[i]
		if u < last {
			before := 0
			if i > 0 {
				before = c.units[i-1]
			}
			if err := t.between.Need(u, before); err != nil {
				return err
			}
		}
		if u < last && (u > 0 || !c.leaves) {
			if err := t.between.Make(u); err != nil {
				return err
			}
		}
		if present {
			t.tape.BackTo(t.marks[i])
			t.model.SumPartial(t.tape, t.paramsOf(u))
			if err := record.take(t, u); err != nil {
				return err
			}
		}
		if !send {
			t.made(c, u)
			continue
		}
		if err := t.send(c, u); err != nil {
			return err
		}
	}
	return nil
}

// paramsOf returns the parameters of unit u.
func (t *Trainer) paramsOf(u int) []*nn.Param {
	from := 0
	if u > 0 {
		from = t.ends[u-1]
	}
	return t.model.Params()[from:t.ends[u]]
}

// send sends the gradient of a unit of a chunk.
func (t *Trainer) send(c *chunk, u int) error {
	if err := t.between.Send(u); err != nil || !t.endsWithTable(c, u) {
		return err
	}
	return t.between.Send(0)
}

// made says that the gradient of a unit of a chunk is complete except for deferred products.
func (t *Trainer) made(c *chunk, u int) {
	if t.between.Made(u); t.endsWithTable(c, u) {
		t.between.Made(0)
	}
}

// endsWithTable reports whether unit u of a chunk is the head and also computes the gradient of a tied table, which
// belongs to the embedding's unit on another stage.
func (t *Trainer) endsWithTable(c *chunk, u int) bool { return u > t.model.Units() && !c.enters }

// makeHead computes the gradient of the head.
func (t *Trainer) makeHead(c *chunk, present bool) error {
	h, err := t.finish(c, present, true)
	if err != nil {
		return err
	}
	if err := t.between.Make(0); err != nil { // the head adds to a tied table first
		return err
	}
	if err := t.between.Make(t.model.Units() + 1); err != nil {
		return err
	}
	if present {
		t.model.HeadLoss(t.tape, h, t.batch)
	}
	return nil
}
