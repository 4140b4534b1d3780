package train

import (
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/schedule"
	"anneal/tensor"
)

// State is what a trainer is beside its tensors. Checkpoints store it.
type State struct {
	Position  Position
	Guard     Guard
	LossScale precision.LossScale
	Domains   *DomainState // nil without domain weights
}

// State returns the present state.
func (t *Trainer) State() State {
	return State{t.progress, t.guard, t.lossScale, t.robust.saved()}
}

// Restore continues from the position and the counters of a state. RestoreDomains restores the domain weights.
func (t *Trainer) Restore(s State) {
	t.progress = s.Position
	if t.progress.Applied == 0 { // saved before these were counted
		t.progress.Applied = t.progress.Tokens
	}
	t.guard.restore(s.Guard)
	t.restoreLossScale(s.LossScale)
}

// Position returns how far training is.
func (t *Trainer) Position() Position { return t.progress }

// Guard returns the counters of the guard.
func (t *Trainer) Guard() Guard { return t.guard }

// Footprint returns the memory that the run was measured to need.
func (t *Trainer) Footprint() *Footprint { return t.footprint }

// SetSchedule replaces the schedule of the configuration.
func (t *Trainer) SetSchedule(s schedule.Schedule) { t.sched = s }

// StartAverage sets the average of the weights, if the run has one, to the weights.
func (t *Trainer) StartAverage() { t.average.start(t.model.Params(), t.dev) }

// SetWeights fills the weights of every parameter i by a function on host memory. The average starts from them, too.
func (t *Trainer) SetWeights(fill func(i int, p *nn.Param, host *tensor.Tensor)) error {
	for i, p := range t.model.Params() {
		device.Fill(t.dev, &p.Value, func(host *tensor.Tensor) { fill(i, p, host) })
	}
	t.StartAverage()
	return Wait(t.dev)
}
