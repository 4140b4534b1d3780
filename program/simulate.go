package program

import "fmt"

// Costs are the times that instructions take, all in the same unit.
type Costs struct {
	Forward, BackwardInput, BackwardWeights []float64 // by part; Backward takes both backward times

	// by stage: from a send to or by the next stage, of the last stage the first, until its contents have arrived. The
	// send itself takes no time of its stage, but the next message in its direction has to wait. nil: messages take no
	// time
	Messages []float64
}

// Even returns costs for parts of equal size. A stage's chunks together take the times forward, input and weights, in
// equal shares; messages take no time.
func Even(stages, chunks int, forward, input, weights float64) Costs {
	var c Costs
	for range stages * chunks {
		c.Forward = append(c.Forward, forward/float64(chunks))
		c.BackwardInput = append(c.BackwardInput, input/float64(chunks))
		c.BackwardWeights = append(c.BackwardWeights, weights/float64(chunks))
	}
	return c
}

// of returns the time that a computation takes.
func (c Costs) of(op Op, part int) float64 {
	switch op {
	case Forward:
		return c.Forward[part]
	case BackwardInput:
		return c.BackwardInput[part]
	case BackwardWeights:
		return c.BackwardWeights[part]
	default:
		return c.BackwardInput[part] + c.BackwardWeights[part]
	}
}

// message returns the time of a message between neighbours in the circle of stages.
func (c Costs) message(from, to, stages int) float64 {
	switch {
	case c.Messages == nil:
		return 0
	case to == (from+1)%stages:
		return c.Messages[from]
	default:
		return c.Messages[to]
	}
}

// A Span is the time from the begin to the end of an instruction. The span of a receive is the time waited.
type Span struct{ Start, End float64 }

// A Timeline is the simulated course of a step.
type Timeline struct {
	Spans [][]Span // by stage and instruction
	Total float64
	Idle  []float64 // by stage: the part of Total in which it computes nothing
	Peak  []int     // by stage: the most micro-batches, counted in each chunk, whose activations it keeps at one time
}

// IdleShare returns the share of all stages' time that is idle, 0 to 1.
func (t Timeline) IdleShare() float64 {
	idle := 0.0
	for _, i := range t.Idle {
		idle += i
	}
	return idle / (t.Total * float64(len(t.Idle)))
}

// Simulate returns the course of a step in which the stages follow their lists: a send takes no time of its stage and
// starts when the message before it has arrived, and a receive waits. It refuses lists that wait for a message that is
// never sent, and costs for another number of parts.
func Simulate(lists [][]Instr, c Costs) (Timeline, error) {
	sim, err := newSimulation(lists, c)
	if err != nil {
		return Timeline{}, err
	}
	for moved := true; moved; {
		moved = false
		for s := range lists {
			for sim.step(s) {
				moved = true
			}
		}
	}
	t := sim.Timeline
	for s, list := range lists {
		if n := len(t.Spans[s]); n < len(list) {
			return Timeline{}, fmt.Errorf("stage %d: instruction %d: %v waits for what is never sent", s, n, list[n])
		}
		t.Total = max(t.Total, sim.now[s])
	}
	for s := range lists {
		t.Idle[s] = t.Total - sim.busy[s]
	}
	return t, nil
}

// A simulation is the state of a simulated step.
type simulation struct {
	Timeline
	lists [][]Instr
	costs Costs

	now, busy []float64           // by stage: its clock, and how long it has computed
	kept      []int               // by stage: micro-batches whose activations it keeps
	arrives   []map[Instr]float64 // by stage and receive
	linkFree  [][2]float64        // by stage: when it can send to the next stage, and to another
}

func newSimulation(lists [][]Instr, c Costs) (*simulation, error) {
	stages, parts := len(lists), len(c.Forward)
	for s, list := range lists {
		for _, i := range list {
			if part := i.Chunk*stages + s; part < 0 || part >= parts {
				return nil, fmt.Errorf("stage %d: %v: there are costs for %d parts", s, i, parts)
			}
		}
	}
	if len(c.BackwardInput) != parts || len(c.BackwardWeights) != parts {
		return nil, fmt.Errorf("there are costs of %d, %d and %d parts for forward and the two halves of backward",
			parts, len(c.BackwardInput), len(c.BackwardWeights))
	}
	if n := len(c.Messages); n > 0 && n != stages {
		return nil, fmt.Errorf("there are times of messages for %d stages instead of %d", n, stages)
	}
	sim := &simulation{lists: lists, costs: c, now: make([]float64, stages), busy: make([]float64, stages),
		kept: make([]int, stages), arrives: make([]map[Instr]float64, stages), linkFree: make([][2]float64, stages)}
	sim.Spans, sim.Idle, sim.Peak = make([][]Span, stages), make([]float64, stages), make([]int, stages)
	for s := range lists {
		sim.arrives[s] = map[Instr]float64{}
	}
	return sim, nil
}

// step carries out the next instruction of a stage and reports whether it could.
func (sim *simulation) step(s int) bool {
	k, stages := len(sim.Spans[s]), len(sim.lists)
	if k == len(sim.lists[s]) {
		return false
	}
	i, start := sim.lists[s][k], sim.now[s]
	switch {
	case i.Op.Sends():
		to, received := i.Peer(s, stages)
		sim.arrives[to][received] = sim.send(s, to, start)
	case i.Op.Message():
		at, sent := sim.arrives[s][i]
		if !sent {
			return false
		}
		sim.now[s] = max(start, at)
	default:
		takes := sim.costs.of(i.Op, i.Chunk*stages+s)
		sim.now[s] += takes
		sim.busy[s] += takes
		sim.keep(s, i.Op)
	}
	sim.Spans[s] = append(sim.Spans[s], Span{start, sim.now[s]})
	return true
}

// send sends a message when its link is free, and returns when it arrives.
func (sim *simulation) send(s, to int, at float64) float64 {
	stages := len(sim.lists)
	free := &sim.linkFree[s][0]
	if to != (s+1)%stages {
		free = &sim.linkFree[s][1]
	}
	*free = max(*free, at) + sim.costs.message(s, to, stages)
	return *free
}

// keep counts the micro-batches whose activations a stage keeps: from forward until the gradients of its weights are
// computed.
func (sim *simulation) keep(s int, op Op) {
	switch op {
	case Forward:
		sim.kept[s]++
		sim.Peak[s] = max(sim.Peak[s], sim.kept[s])
	case Backward, BackwardWeights:
		sim.kept[s]--
	}
}
