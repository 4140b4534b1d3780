// Package schedule holds the learning-rate schedules, one file each. A schedule maps the number of an update, t = 1 … T,
// to a fraction of the peak rate, so that the last update runs at exactly the final ratio. The package imports nothing.
package schedule
