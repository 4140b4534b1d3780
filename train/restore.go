package train

import (
	"anneal/device"
	"anneal/nn"
	"anneal/optim"
	"anneal/precision"
	"anneal/schedule"
	"anneal/tensor"
)

// State is the state of a trainer besides its tensors. Checkpoints store it.
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

// Restore continues from the position and the counters of a state. Load the tensors before. RestoreDomains restores
// the domain weights.
func (t *Trainer) Restore(s State) error {
	t.progress = s.Position
	if t.progress.Applied == 0 && t.progress.Updates > 0 { // saved before these were counted
		t.progress.Applied = t.progress.Tokens
	}
	t.guard.restore(s.Guard, s.Position.Step)
	t.restoreLossScale(s.LossScale)
	t.average.restored(t.updated, t.dev)
	return t.show()
}

// Position returns the current position of training.
func (t *Trainer) Position() Position { return t.progress }

// Guard returns the counters of the guard. Skips in a row are those of the group with the most.
func (t *Trainer) Guard() Guard {
	g := t.guard
	if t.outer != nil {
		g.Row, g.RowFirst, g.RowNonFinite = t.outer.row, t.outer.rowFirst, t.outer.rowNonFinite
	}
	return g
}

// Footprint returns the measured memory of the run.
func (t *Trainer) Footprint() *Footprint { return t.footprint }

// SetSchedule replaces the schedule of the configuration.
func (t *Trainer) SetSchedule(s schedule.Schedule) { t.sched = s }

// StartAverage sets the averages of the weights, if the run has some, to the weights.
func (t *Trainer) StartAverage() {
	t.average.start(t.params, t.dev)
	t.startTrained(t.dev)
}

// SetWeights fills the weights of every parameter by a function that receives host memory for the whole parameter. The
// average starts from these weights, too.
func (t *Trainer) SetWeights(fill func(p *nn.Param, host *tensor.Tensor)) error {
	for i := range t.updated {
		u := &t.updated[i]
		p := t.model.Params()[u.index]
		device.Fill(t.dev, &u.Value, func(host *tensor.Tensor) {
			if host.Len() == p.Len() {
				fill(p, host)
				return
			}
			whole := tensor.View(host.DType(), make([]byte, p.Len()*host.DType().Size()), p.Shape...)
			fill(p, &whole)
			size := host.DType().Size()
			x := Tensor{Shape: p.Shape, Region: p.Region, From: u.First, To: u.First + host.Len()}
			x.Runs(func(local, global, n int) {
				copy(host.Raw()[local*size:], whole.Raw()[global*size:(global+n)*size])
			})
		})
	}
	if err := t.show(); err != nil {
		return err
	}
	t.StartAverage()
	t.outer.start(t.dev)
	return Wait(t.dev)
}

// Hold makes the present weights those that init.ewc keeps weights near to. A function fills in the importance of each
// parameter's weights.
func (t *Trainer) Hold(fill func(p *nn.Param, host *tensor.Tensor)) error {
	for i := range t.updated {
		u := &t.updated[i]
		for k := range u.state {
			switch e := &u.state[k]; e.Name {
			case optim.EWCStart:
				t.dev.Copy(&e.Tensor, &u.Value)
			case optim.EWCImportance:
				device.Fill(t.dev, &e.Tensor, func(host *tensor.Tensor) { fill(u.Param, host) })
			}
		}
	}
	return Wait(t.dev)
}

// Settle waits until no transfer between ranks is in flight. All ranks call it before they free their memory.
func (t *Trainer) Settle() error {
	if t.shard == nil {
		return nil
	}
	return t.shard.Settle()
}

// show publishes this rank's weights to all ranks after something other than a step has changed them.
func (t *Trainer) show() error {
	if t.shard == nil {
		return nil
	}
	return t.shard.Show(nil)
}
