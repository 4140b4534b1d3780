package train

import "anneal/parallel"

// between is what happens between the units of a model on several ranks: weights arrive, gradients leave. Units are
// numbered as in model.Decoder.UnitParams. A parallel.Shard is one; on a rank alone nothing happens.
type between interface {
	Need(u, next int) error // before the forward or backward pass of unit u, which next follows; 0 for none
	Make(u int) error       // before the gradients of unit u are made
	Made(u int)             // after, where products are put off
	Send(u int) error       // after
	Publish(u int) error    // after the update of unit u
}

var _ between = (*parallel.Shard)(nil)

type alone struct{}

func (alone) Need(int, int) error { return nil }
func (alone) Make(int) error      { return nil }
func (alone) Made(int)            {}
func (alone) Send(int) error      { return nil }
func (alone) Publish(int) error   { return nil }
