// Package schedule holds the quantities that change during a run as functions of progress: the learning rate, one
// file per schedule, the batch size and the sequence length. The package imports nothing.
//
// A learning-rate schedule maps a position t = 1 … T to a fraction of the peak rate; at T it is exactly the final
// ratio. An update with the rate 0 would be wasted, so a schedule that ends at 0 gets the position after the last
// update as its T. Positions count updates, or tokens if the batch grows: the fields of a schedule are in the same
// unit. Start with schedule.go.
package schedule
