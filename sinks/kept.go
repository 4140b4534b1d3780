package sinks

import "time"

// Kept is the time of the steps that this process has made and the run keeps. If the process takes the run back and
// continues it with new sinks, they share it. The zero value is that of a process before its first step.
type Kept struct {
	last  int // step so far
	steps int
	time  time.Duration
}

// add counts a step that brought the run on.
func (k *Kept) add(step int, took time.Duration) {
	k.last = step
	k.steps++
	k.time += took
}

// back removes the steps after the one that the run continues from, with the mean time of a step.
func (k *Kept) back(step int) {
	undone := min(max(k.last-step, 0), k.steps)
	k.last = step
	if undone > 0 {
		k.time -= k.time / time.Duration(k.steps) * time.Duration(undone)
		k.steps -= undone
	}
}
