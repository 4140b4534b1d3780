package train

import "anneal/autograd"

// forward runs the batch in hand up to the head, unit by unit: [N, D]. It marks where on the tape units begin. A rank
// without a batch (not present) only takes part in what the others need.
func (e *Evaluator) forward(present, grad bool) (x *autograd.Var, err error) {
	m, tape, b, last := e.model, e.tape, e.batch, e.model.Units()+1
	if present {
		tape.Reset(grad)
	}
	e.marks = e.marks[:0]
	for u := range last + 1 {
		next := (u + 1) % (last + 1)
		if u == last && grad {
			next = last - 1
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
		case last:
			x = m.Finish(tape, x) // [N, D]
		default:
			x = m.Unit(tape, u-1, x, &b.Seq) // [N, D]
		}
	}
	return x, nil
}

// loss computes the losses of the batch in hand, if there is one.
func (e *Evaluator) loss(present bool) error {
	x, err := e.forward(present, false)
	if err == nil && present {
		e.model.HeadLoss(e.tape, x, e.batch)
	}
	return err
}

// propagate runs the micro-batch in hand, if there is one, forward and backward. With send, gradients leave unit by
// unit. A fingerprint that is not nil takes the hashes of losses and gradients.
func (t *Trainer) propagate(present, send bool, record *fingerprint) error {
	last := t.model.Units() + 1
	x, err := t.forward(present, true)
	if err != nil {
		return err
	}
	if err := t.between.Make(0); err != nil { // the head adds to a tied table first
		return err
	}
	if err := t.between.Make(last); err != nil {
		return err
	}
	if present {
		t.model.HeadLoss(t.tape, x, t.batch)
	}
	for u := last; u >= 0; u-- {
		if u > 0 && u < last {
			if err := t.between.Need(u, u-1); err != nil {
				return err
			}
			if err := t.between.Make(u); err != nil {
				return err
			}
		}
		if present {
			t.tape.BackTo(t.marks[u])
			if err := record.take(t, u); err != nil {
				return err
			}
		}
		if !send {
			continue
		}
		if err := t.between.Send(u); err != nil {
			return err
		}
	}
	return nil
}
