package plan

import (
	"slices"

	"anneal/config"
	"anneal/model"
	"anneal/program"
)

// A window is what a rank at stage 3 of ZeRO has of other ranks' weights: the embedding, received once a step, and two
// slots for the other units, which take turns (parallel.Shard).
type window struct {
	units    []float64 // bytes of each unit that is computed with; 0 of those that the rank lacks
	slots    [2]int
	received float64
}

// need receives the weights of unit u, unless they are here, and those of next, 0 for none.
func (w *window) need(u, next int) {
	if u == 0 {
		return
	}
	for _, u := range []int{u, next} {
		if slot := &w.slots[(u+1)%2]; u > 0 && *slot != u {
			*slot, w.received = u, w.received+w.units[u]
		}
	}
}

// gathered returns the bytes of weights that a rank of a stage of the pipeline receives at stage 3 in a step of so many
// micro-batches. Of many it follows a few and continues: from the fifth round of as many as there are stages on, every
// round takes as much.
func gathered(cfg *config.Config, m *model.Decoder, stage int, units []float64, micros int) (float64, error) {
	_, _, stages := cfg.Parallel.Mesh()
	schedule, err := program.Parse(cfg.Parallel.Schedule)
	if err != nil {
		return 0, err
	}
	follow := func(micros int) float64 {
		lists, e := schedule.Fit(stages, micros)
		if e != nil {
			err = e
			return 0
		}
		return followed(m, lists[stage], stage == 0, stage == stages-1, units)
	}
	few := 4*stages + micros%stages
	if micros <= few+stages {
		return follow(micros), err
	}
	start := follow(few)
	return start + (follow(few+stages)-start)*float64((micros-few)/stages), err
}

// followed returns the bytes of weights that a rank receives while it follows instructions, as train/propagate.go does.
func followed(m *model.Decoder, list []program.Instr, first, last bool, units []float64) float64 {
	w := &window{units: units, received: units[0]}
	for _, i := range list {
		chunk := unitsOf(m, i.Chunk, first, last)
		switch i.Op {
		case program.Forward:
			w.pass(chunk)
		case program.Backward, program.BackwardInput:
			slices.Reverse(chunk)
			w.pass(chunk)
		}
	}
	return w.received
}

// unitsOf returns the units of a chunk in order. The first stage begins with the embedding, unit 0, and the last stage
// ends with the final norm and the head.
func unitsOf(m *model.Decoder, chunk int, first, last bool) (list []int) {
	from, to := m.Chunk(chunk)
	if first && chunk == 0 {
		list = append(list, 0)
	}
	for u := from; u < to; u++ {
		list = append(list, u+1)
	}
	if last && chunk == m.Chunks()-1 {
		list = append(list, m.Units()+1)
	}
	return list
}

// pass receives what a pass through units needs, in this order.
func (w *window) pass(units []int) {
	for i, u := range units {
		next := 0
		if i+1 < len(units) {
			next = units[i+1]
		}
		w.need(u, next)
	}
}
