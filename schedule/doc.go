// Package schedule holds what changes over a run as a function of how far it is: the learning rate, one file for each
// rule, and the size of a step's batch and the length of its sequences. The package imports nothing.
//
// A learning-rate schedule maps a position t = 1 … T to a fraction of the peak rate, so that the last update runs at
// exactly the final ratio. Positions count updates, or tokens in a run whose batch grows: a schedule only ever sees how
// far it is, in the unit its fields are given in. Start with schedule.go.
package schedule
