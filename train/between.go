package train

import "anneal/parallel"

// between is the work between the units of a model on several ranks: weights arrive and gradients leave. Units are
// numbered as in model.Decoder.UnitParams. parallel.Shard implements it; on a single rank there is nothing to do.
type between interface {
	Need(u, next int) error // before unit u runs forward or backward; next is the unit after it, 0 for none
	Make(u int) error       // before the gradients of unit u are computed
	Made(u int)             // after they are computed, if products are deferred
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
