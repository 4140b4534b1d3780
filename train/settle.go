package train

import (
	"encoding/binary"
	"fmt"
	"math"

	"anneal/autograd"
	"anneal/dataset"
	"anneal/nn"
	"anneal/parallel"
	"anneal/precision"
)

// Settling. Once each owner has summed the gradient of its pieces, all ranks exchange one message with every number
// that a decision can depend on: the sums over their micro-batches, the sums of squares of their pieces, the largest
// magnitudes of FP8 operands, and the bits of Trainer.Ask. All ranks fold the same numbers in the same order, so they
// clip, skip, rescale and stop alike.

// told is the message of one rank to the others.
type told struct {
	parallel.Place
	micros          []microSums
	squares, blocks []parallel.Squares // of the gradient, and of the blocks' gradients if the noise is measured
	amax            []float64          // by scale
}

// settle ends the gradient of the batch at from on several ranks.
func (t *Trainer) settle(src dataset.Source, from uint64) (batchSums, error) {
	if err := t.shard.Drain(); err != nil {
		return batchSums{}, err
	}
	if err := t.shard.Tie(); err != nil {
		return batchSums{}, err
	}
	texts, err := t.world.Share(t.message())
	if err != nil {
		return batchSums{}, err
	}
	all := make([]told, len(texts))
	for r, text := range texts {
		in := reader{text}
		t.Heard |= in.bits()
		all[r] = in.told(t.mesh.At(r))
		if len(in.rest) > 0 {
			return batchSums{}, fmt.Errorf("train: %d bytes are left of a rank's message", len(in.rest))
		}
	}
	t.micros = t.micros[:0]
	for i := range t.accum {
		t.micros = append(t.micros, t.microOf(all, i))
	}
	scale := t.tape.LossScale * t.tape.LossScale
	var squares, blocks []parallel.Squares
	for r := range all {
		squares, blocks = append(squares, all[r].squares...), append(blocks, all[r].blocks...)
		if all[r].Stage != t.mesh.Stage {
			continue
		}
		k := 0
		delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) {
			s.Observe(float32(all[r].amax[k]))
			k++
		})
	}
	t.blockSquares = parallel.SquaredNorm(blocks, nil) / scale
	return t.sum(src, from, parallel.SquaredNorm(squares, t.norms.begin())/scale), t.shard.Total()
}

// microOf returns the sums of micro-batch i of the step, added up from the messages of all ranks that work on it.
// Losses come from the last stage, routing from every stage, and with context parallelism each rank has sums over its
// own tokens.
func (t *Trainer) microOf(all []told, i int) (sum microSums) {
	block := t.block()
	round, k := i/block/t.mesh.Replicas, i%block
	for r := range all {
		x := &all[r]
		if x.Data != i/block%t.mesh.Replicas || x.Cut > 0 {
			continue
		}
		m := &x.micros[round*block+k]
		switch last := x.Stage == t.mesh.Pipeline-1; {
		case last && x.Chunk == 0:
			m.routing.Add(sum.routing)
			sum = *m
		case last:
			sum.addTokens(m)
		default:
			sum.routing.Add(m.routing)
		}
	}
	return sum
}

// message returns this rank's message to the others.
func (t *Trainer) message() []byte {
	m := message(t.told[:0])
	asked := uint64(0)
	if t.Ask != nil {
		asked = t.Ask()
	}
	m.bits(asked)
	m.float(float64(len(t.micros)))
	for i := range t.micros {
		m.micro(&t.micros[i])
	}
	m.squares(t.shard.Squares(t.shard.SquareSums()))
	if len(t.blocks.sums) > 0 {
		m.squares(t.shard.Squares(t.blocks.sums))
	} else {
		m.squares(nil)
	}
	amax := t.amax[:0]
	delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { amax = append(amax, float64(s.Amax())) })
	t.amax = amax
	m.floats(amax)
	t.told = m
	return m
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

// message holds numbers for other ranks.
type message []byte

func (m *message) bits(x uint64) { *m = binary.LittleEndian.AppendUint64(*m, x) }

func (m *message) float(x float64) { m.bits(math.Float64bits(x)) }

func (m *message) floats(list []float64) {
	m.float(float64(len(list)))
	for _, x := range list {
		m.float(x)
	}
}

func (m *message) squares(list []parallel.Squares) {
	m.float(float64(len(list)))
	for _, x := range list {
		m.floats([]float64{float64(x.Param), float64(x.Cut), float64(x.From), float64(x.Part)})
		m.floats(x.Sums)
	}
}

func (m *message) micro(s *microSums) {
	m.floats([]float64{
		s.loss, s.squaredLogZ, float64(s.targets), s.flops, s.divergence,
		s.routing.Balance, s.routing.ZLoss, float64(s.routing.Tokens),
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

// told reads the message of the rank at a place.
func (r *reader) told(at parallel.Place) told {
	x := told{Place: at}
	for range int(r.float()) {
		x.micros = append(x.micros, r.micro())
	}
	x.squares, x.blocks, x.amax = r.squares(), r.squares(), r.floats()
	return x
}

func (r *reader) squares() (list []parallel.Squares) {
	for range int(r.float()) {
		at := r.floats()
		list = append(list, parallel.Squares{
			Param: int(at[0]), Cut: int(at[1]), From: int(at[2]), Part: int(at[3]), Sums: r.floats(),
		})
	}
	return list
}

func (r *reader) micro() microSums {
	x := r.floats()
	m := microSums{
		loss: x[0], squaredLogZ: x[1], targets: int(x[2]), flops: x[3], divergence: x[4],
		routing: autograd.Routing{Balance: x[5], ZLoss: x[6], Tokens: int(x[7])},
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
