package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"anneal/autograd"
	"anneal/dataset"
	"anneal/device"
	"anneal/nn"
	"anneal/parallel"
	"anneal/precision"
	"anneal/tensor"
)

// Settling. When the gradient of a step is summed, each owner with its pieces, all ranks tell each other in one message
// what a decision can depend on: the sums over their micro-batches, the sums of squares of their pieces, the largest
// magnitudes of FP8 operands, and what the run asks for (Trainer.Ask). All fold the same numbers in the same order, so
// they clip, skip, rescale and stop alike.

// settle ends the gradient of the batch at from on several ranks.
func (t *Trainer) settle(src dataset.Source, from uint64) (batchSums, error) {
	if err := t.shard.Drain(); err != nil {
		return batchSums{}, err
	}
	all, err := t.world.Share(t.message())
	if err != nil {
		return batchSums{}, err
	}
	readers := make([]reader, len(all))
	for r, text := range all {
		readers[r] = reader{text}
		t.Heard |= readers[r].bits()
	}
	t.micros = t.micros[:0]
	for i := range t.accum {
		t.micros = append(t.micros, readers[i/t.cfg.Parallel.SumBlock%len(readers)].micro())
	}
	scale := t.tape.LossScale * t.tape.LossScale
	squares := t.shard.SquaredNorm(floatsOf(readers)) / scale
	if first := floatsOf(readers); t.measuresNoise() {
		t.firstSquares = t.shard.SquaredNorm(first) / scale
	}
	for i := range readers {
		r := &readers[i]
		delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { s.Observe(float32(r.float())) })
		if len(r.rest) > 0 {
			return batchSums{}, fmt.Errorf("train: %d bytes are left of a rank's message", len(r.rest))
		}
	}
	return t.sum(src, from, squares), t.shard.Total()
}

// message is what this rank tells the others.
func (t *Trainer) message() []byte {
	m := message(t.told[:0])
	asked := uint64(0)
	if t.Ask != nil {
		asked = t.Ask()
	}
	m.bits(asked)
	for i := range t.micros {
		m.micro(&t.micros[i])
	}
	m.floats(t.shard.SquareSums(nil))
	m.floats(t.firstSums)
	t.firstSums = t.firstSums[:0]
	delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { m.float(float64(s.Amax())) })
	t.told = m
	return m
}

// measureFirst sums the squares of a piece of the first micro-batch's gradient, where the noise is measured.
func (t *Trainer) measureFirst(o *parallel.Owned, terms []*tensor.Tensor) {
	if !t.measuresNoise() {
		return
	}
	at, n := o.Stretch, device.Stretches(terms[0])
	if len(t.firstSums) < at+n {
		t.firstSums = slices.Grow(t.firstSums, at+n)[:at+n]
	}
	t.dev.SquareSums(t.firstSums[at:at+n], terms[0])
}

// shareFloats gives every rank's numbers to all, by rank.
func (e *Evaluator) shareFloats(mine ...float64) ([][]float64, error) {
	var m message
	m.floats(mine)
	all, err := e.world.Share(m)
	if err != nil {
		return nil, err
	}
	readers := make([]reader, len(all))
	for i, text := range all {
		readers[i] = reader{text}
	}
	return floatsOf(readers), nil
}

// message is numbers for other ranks.
type message []byte

func (m *message) bits(x uint64) { *m = binary.LittleEndian.AppendUint64(*m, x) }

func (m *message) float(x float64) { m.bits(math.Float64bits(x)) }

func (m *message) floats(list []float64) {
	m.float(float64(len(list)))
	for _, x := range list {
		m.float(x)
	}
}

func (m *message) micro(s *microSums) {
	m.floats([]float64{
		s.loss, s.squaredLogZ, float64(s.targets), s.flops, s.routing.Balance, s.routing.ZLoss,
	})
	m.float(float64(len(s.rows)))
	for _, r := range s.rows {
		m.float(r.nats)
		m.float(float64(r.targets))
	}
}

// reader reads a message. All ranks run the same program, so a message that is too short is a defect of the transport.
type reader struct{ rest []byte }

func (r *reader) bits() uint64 {
	x := binary.LittleEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return x
}

func (r *reader) float() float64 { return math.Float64frombits(r.bits()) }

func (r *reader) micro() microSums {
	x := r.floats()
	m := microSums{
		loss: x[0], squaredLogZ: x[1], targets: int(x[2]), flops: x[3],
		routing: autograd.Routing{Balance: x[4], ZLoss: x[5]},
	}
	for range int(r.float()) {
		m.rows = append(m.rows, sourceLoss{r.float(), int(r.float())})
	}
	return m
}

func (r *reader) floats() []float64 {
	list := make([]float64, int(r.float()))
	for i := range list {
		list[i] = r.float()
	}
	return list
}

func floatsOf(readers []reader) (list [][]float64) {
	for i := range readers {
		list = append(list, readers[i].floats())
	}
	return list
}
