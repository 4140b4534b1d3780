package train

import (
	"fmt"
	"slices"
	"time"

	"anneal/autograd"
	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/parallel"
	"anneal/program"
	"anneal/tensor"
)

// Pipeline parallelism (Huang et al. 2018, arXiv 1811.06965; Narayanan et al. 2021, arXiv 2104.04473). A rank has some
// layers: one chunk of them, or several with an interleaved schedule. It follows exactly the list of instructions that
// package program makes for its stage. Every stage reads the tokens of its micro-batches itself. The residual stream
// is sent from stage to stage without rounding, and so is its gradient on the way back, so the bits are the same as on
// one rank.
//
// Memory: a slot for each chunk of a micro-batch that is between its forward and its backward pass.
type pipeline struct {
	schedule string
	stages   int
	stage    int
	lists    map[int][]step // of this stage, by number of micro-batches
	links    [4]link

	deferred []*autograd.Deferred // used in turn by micro-batches whose weight gradients are deferred

	first bool // layers mix in the stream before the first layer, so it is sent, too
}

// The links of a stage: the stream in and out, and its gradient in and out.
const (
	streamIn = iota
	streamOut
	gradientIn
	gradientOut
)

// step is an instruction.
type step struct {
	program.Instr
	last bool // the last step of its micro-batch and chunk, after which the slot is free
}

// link is one direction between this stage and a neighbour. Its transfers take turns, so that messages can be in
// flight while the next ones are computed.
type link struct {
	turns     []comm.Transfer
	next      int
	out, room [][]tensor.Tensor // tensors that the sender sends, and memory of the receiver
}

// layPipeline prepares the transfers of a stage, of which f.turns may be in flight in each direction, and the memory
// for received tensors and for deferred products; nil without a pipeline. Tensors that are sent have the shapes of
// streams.
func layPipeline(mesh *parallel.Mesh, cfg *config.Config, streams []tensor.Tensor, f *Footprint,
	arena func(string) *tensor.Arena) *pipeline {
	if mesh.Pipeline == 1 {
		return nil
	}
	p := &pipeline{
		schedule: cfg.Parallel.Schedule, stages: mesh.Pipeline, stage: mesh.Stage, lists: map[int][]step{},
		first: len(streams) > 1,
	}
	for range f.deferred {
		a := arena(Deferred)
		p.deferred = append(p.deferred, autograd.NewDeferred(a.Part(f.deferredKeep), a.Part(f.deferredTemp)))
	}
	before, after := mesh.Neighbours()
	connect := func(on int, name string, pair comm.Comm, in bool) {
		l := &p.links[on]
		l.out = make([][]tensor.Tensor, 2)
		for range f.turns { // Start sets what is sent
			l.turns = append(l.turns, pair.NewExchange(name, l.out, l.out))
		}
		if !pair.InPlace() {
			l.room = make([][]tensor.Tensor, 2)
		}
		for i := 0; in && !pair.InPlace() && i < len(streams); i++ {
			l.room[0] = append(l.room[0], arena(parallel.Received).New(streams[i].DType(), streams[i].Shape()...))
		}
	}
	for _, last := range []bool{mesh.First(), !mesh.First()} { // pairs may wait for each other: not in a circle
		if last {
			connect(streamOut, "the stream", after.Forward, false)
			connect(gradientIn, "the gradient of the stream", after.Backward, true)
		} else {
			connect(streamIn, "the stream", before.Forward, true)
			connect(gradientOut, "the gradient of the stream", before.Backward, false)
		}
	}
	return p
}

// streams describes the tensors that stages send: the residual stream of a batch and, if layers mix it in, the stream
// before the first layer.
func streams(cfg *config.Config, f *Footprint, b *model.Batch) []tensor.Tensor {
	rows := b.Tokens.Len()
	if n := max(cfg.Parallel.Tensor, 1); cfg.Parallel.Sequence {
		rows /= n
	}
	m := tensor.NewMeasure("streams")
	x := m.New(f.Policy.Types().Stream, rows, f.Model.Dim)
	if f.Model.X0Skip {
		return []tensor.Tensor{x, x}
	}
	return []tensor.Tensor{x}
}

// countSlots counts the slots that a rank of a mesh needs in the largest step, the most slots that any stage needs,
// and the micro-batches of this rank whose weight gradients are deferred at a time.
func (f *Footprint) countSlots(cfg *config.Config, mesh *parallel.Mesh) error {
	f.Slots, f.turns, f.deferred = 1, 1, 0
	if mesh.Pipeline == 1 {
		return nil
	}
	round := mesh.Replicas * cfg.Parallel.SumBlock
	n := (stepMicros(cfg) + round - 1) / round * cfg.Parallel.SumBlock
	for stage := range mesh.Pipeline {
		p := pipeline{schedule: cfg.Parallel.Schedule, stages: mesh.Pipeline, stage: stage, lists: map[int][]step{}}
		list, err := p.program(n)
		if err != nil {
			return err
		}
		n, waiting, busy := 0, 0, map[[2]int]bool{}
		for _, x := range list {
			switch mine := stage == mesh.Stage; {
			case mine && x.Op == program.BackwardInput:
				waiting++
				f.deferred = max(f.deferred, waiting)
			case mine && x.Op == program.BackwardWeights:
				waiting--
			}
			of := [2]int{x.Micro, x.Chunk}
			busy[of] = true
			if n = max(n, len(busy)); x.last {
				delete(busy, of)
			}
		}
		if f.turns = max(f.turns, n); stage == mesh.Stage {
			f.Slots = n
		}
	}
	return nil
}

// send sends tensors of a slot by the next transfer of a link.
func (p *pipeline) send(s *slot, on int, x ...tensor.Tensor) error {
	l := &p.links[on]
	t := l.take()
	if err := t.Sent(); err != nil {
		return err
	}
	l.out[1] = append(l.out[1][:0], x...)
	t.Set(l.out, l.room)
	t.Start(1)
	if err := t.Wait(); err != nil { // nothing comes
		return err
	}
	t.Release()
	s.sent = append(s.sent, t)
	return nil
}

// receive waits for the next message of a link, which is valid until the transfer's Release.
func (p *pipeline) receive(on int) ([]tensor.Tensor, comm.Transfer, error) {
	l := &p.links[on]
	t := l.take()
	t.Set(l.out, l.room)
	t.Start(1)
	if err := t.Wait(); err != nil {
		return nil, nil, err
	}
	return t.From(0), t, nil
}

func (l *link) take() comm.Transfer {
	t := l.turns[l.next]
	l.next = (l.next + 1) % len(l.turns)
	return t
}

// reuse waits until no transfer reads the memory of a slot.
func (p *pipeline) reuse(s *slot) error {
	for _, t := range s.sent {
		if err := t.Sent(); err != nil {
			return err
		}
	}
	s.sent = s.sent[:0]
	return nil
}

// receiveForward begins the stream of a slot with the stream that the stage before sends.
func (p *pipeline) receiveForward(s *slot) error {
	from, t, err := p.receive(streamIn)
	if err != nil {
		return err
	}
	s.in = s.tape.Begin(&from[0]) // [N, D]
	if p.first {
		s.batch.Seq.First = s.tape.Begin(&from[1]) // [N, D]
	}
	t.Release()
	return nil
}

// sendForward sends the stream of a slot to the stage after.
func (p *pipeline) sendForward(s *slot) error {
	if p.first {
		return p.send(s, streamOut, s.out.Value, s.batch.Seq.First.Value)
	}
	return p.send(s, streamOut, s.out.Value)
}

// receiveBackward takes the gradient of a slot's stream from the stage after.
func (p *pipeline) receiveBackward(s *slot) error {
	from, t, err := p.receive(gradientIn)
	if err != nil {
		return err
	}
	s.tape.SetGradient(s.out, &from[0]) // [N, D]
	if p.first {
		s.tape.SetGradient(s.batch.Seq.First, &from[1]) // [N, D]
	}
	t.Release()
	return nil
}

// sendBackward sends the gradient of a slot's stream to the stage before.
func (p *pipeline) sendBackward(s *slot) error {
	g := s.tape.Gradient(s.in)
	if p.first {
		return p.send(s, gradientOut, *g, *s.tape.Gradient(s.batch.Seq.First))
	}
	return p.send(s, gradientOut, *g)
}

// program returns the instructions of this stage for a step of n micro-batches.
func (p *pipeline) program(n int) ([]step, error) {
	if p.lists[n] == nil {
		schedule, err := program.Parse(p.schedule)
		if err != nil {
			return nil, err
		}
		lists, err := schedule.Fit(p.stages, n)
		if err != nil {
			return nil, err
		}
		seen := map[[2]int]bool{}
		list := []step{}
		for _, x := range slices.Backward(lists[p.stage]) {
			of := [2]int{x.Micro, x.Chunk}
			list = append(list, step{x, !seen[of]})
			seen[of] = true
		}
		slices.Reverse(list)
		p.lists[n] = list
	}
	return p.lists[n], nil
}

// pipelined computes the gradients of this rank's micro-batches of the batch at from. rounds is the number of
// micro-batches of the rank with the most.
func (t *Trainer) pipelined(src dataset.Source, from uint64, rounds int) (err error) {
	defer parallel.Recover(&err)
	list, err := t.pipe.program(rounds)
	if err != nil {
		return err
	}
	t.micros = t.micros[:0]
	for _, x := range list {
		began := time.Now()
		if err := t.follow(x.Instr, src, from); err != nil {
			return err
		}
		if t.OnInstr != nil {
			t.OnInstr(x.Instr, began, time.Since(began))
		}
		t.busy = !x.last
	}
	t.slot = &t.slots[0]
	t.tape.LossScale = t.scale
	return nil
}

// follow carries out one instruction.
func (t *Trainer) follow(x program.Instr, src dataset.Source, from uint64) error {
	i := t.microOfRank(x.Micro)
	present := i < t.accum
	if taken, err := t.occupy(x, present); err != nil {
		return err
	} else if taken && present {
		if err := t.prepare(src, from, i); err != nil {
			return err
		}
	}
	if err := t.act(x, present); err != nil {
		return err
	}
	switch {
	case !present || x.Op != program.Backward && x.Op != program.BackwardInput:
	case x.Chunk == len(t.chunks)-1: // the first of a micro-batch's chunks in backward
		t.micros = append(t.micros, t.measure(src, t.firstSample(from, i)))
	default:
		t.micros[x.Micro].routing.Add(t.tape.Routing)
	}
	return nil
}

// act carries out the computation or transfer of an instruction if this rank has the micro-batch; else it only takes
// part in the ranks' exchanges.
func (t *Trainer) act(x program.Instr, present bool) error {
	c, s := &t.chunks[x.Chunk], t.slot
	switch x.Op {
	case program.Forward:
		t.enter(Forward)
		out, err := t.forward(c, s.in, present, true)
		s.out = out
		return err
	case program.BackwardWeights:
		t.enter(Backward)
		t.beginRound(x.Micro)
		return t.backwardWeights(c, present)
	case program.Backward, program.BackwardInput:
		t.beginRound(x.Micro)
		return t.backward(c, present, x.Op == program.Backward, nil)
	}
	if !present {
		return nil
	}
	switch x.Op {
	case program.ReceiveForward:
		return t.pipe.receiveForward(s)
	case program.SendForward:
		return t.pipe.sendForward(s)
	case program.ReceiveBackward:
		return t.pipe.receiveBackward(s)
	case program.SendBackward:
		return t.pipe.sendBackward(s)
	}
	return nil
}

// backwardWeights computes the products that backward has deferred, and sends the gradients of a chunk.
func (t *Trainer) backwardWeights(c *chunk, present bool) error {
	if present {
		t.tape.RunDeferred()
	}
	for _, u := range slices.Backward(c.units) {
		if err := t.send(c, u); err != nil {
			return err
		}
	}
	return nil
}

// defers reports whether a schedule defers products of backward.
func defers(cfg *config.Config) bool {
	return cfg.Parallel.Pipeline > 1 && cfg.Parallel.Schedule == "zb-h1"
}

// checkDeferred refuses configurations that do not work with deferred products: the micro-batches of a step must add
// up in place.
func checkDeferred(cfg *config.Config, mesh *parallel.Mesh, s *parallel.Shard) error {
	if !defers(cfg) {
		return nil
	}
	if n := (stepMicros(cfg) + mesh.Replicas - 1) / mesh.Replicas; s.Block < n {
		return config.Problem{
			Key: "parallel.schedule", Try: fmt.Sprintf("parallel.sum_block = %d, or parallel.schedule = 1f1b", n),
			Message: fmt.Sprintf("parallel.schedule = zb-h1 adds up the %d micro-batches of a rank before "+
				"they travel, and parallel.sum_block = %d", n, cfg.Parallel.SumBlock),
		}
	}
	return nil
}

// occupy makes the slot of an instruction's micro-batch and chunk the current one. If they have no slot yet, they take
// a free one, and the caller must read the tokens.
func (t *Trainer) occupy(x program.Instr, present bool) (taken bool, err error) {
	free := -1
	for k := range t.slots {
		switch s := &t.slots[k]; {
		case !s.busy:
			free = k
		case s.micro == x.Micro && s.chunk == x.Chunk:
			t.slot = s
			return false, nil
		}
	}
	s := &t.slots[free]
	t.slot, s.micro, s.chunk, s.busy = s, x.Micro, x.Chunk, true
	if !present {
		return true, nil
	}
	if err := t.pipe.reuse(s); err != nil {
		return true, err
	}
	if n := len(t.pipe.deferred); n > 0 {
		s.tape.Deferred = t.pipe.deferred[x.Micro%n] // weight gradients are computed in the order of micro-batches
	}
	s.tape.Reset(true)
	return true, nil
}
