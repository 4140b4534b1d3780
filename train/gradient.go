package train

import (
	"context"
	"slices"

	"anneal/autograd"
	"anneal/dataset"
	"anneal/device"
	"anneal/precision"
)

// microSums are sums over the targets of a micro-batch.
type microSums struct {
	loss        float64 // nats
	squaredLogZ float64 // for the z-loss; 0 if there is none
	divergence  float64 // from the teacher; 0 without one
	targets     int
	flops       float64
	routing     autograd.Routing
	rows        []sourceLoss // losses of the rows of a mix
}

// addTokens adds the sums over other tokens of the micro-batch. It leaves out targets and operations, because every
// rank has counted all of them.
func (s *microSums) addTokens(m *microSums) {
	s.loss += m.loss
	s.squaredLogZ += m.squaredLogZ
	s.divergence += m.divergence
	s.routing.Add(m.routing)
	for i := range s.rows {
		s.rows[i].nats += m.rows[i].nats
		s.rows[i].targets += m.rows[i].targets
	}
}

// batchSums are sums over the micro-batches of a step, in their order.
type batchSums struct {
	loss        float64
	squaredLogZ float64
	divergence  float64
	targets     int
	flops       float64
	routing     autograd.Routing
	squares     float64 // squared norm of the gradient, without the loss scale of fp16

	blocks       float64 // Σ of the squared norms of the blocks' gradients, where the noise is measured
	blockTargets float64 // Σ of the squares of their numbers of targets
}

func (s *batchSums) add(m *microSums) {
	s.loss += m.loss
	s.squaredLogZ += m.squaredLogZ
	s.divergence += m.divergence
	s.targets += m.targets
	s.flops += m.flops
	s.routing.Add(m.routing)
}

// gradient computes the gradient of the summed loss of the batch whose samples start at from, by folding the gradients
// of its micro-batches. With D replicas, replica d computes micro-batches d, d+D, d+2D, …. Losses are also summed in
// the order of micro-batches. A single rank stops between two micro-batches if ctx ends. With K groups that step
// separately (outer.go), group k has micro-batches k, k+K, …, and deals them out to its ranks.
func (t *Trainer) gradient(ctx context.Context, src dataset.Source, from uint64) (batchSums, error) {
	for _, p := range t.model.Params() {
		p.ResetGrad()
	}
	t.blocks.reset()
	t.micros = t.micros[:0]
	t.scale = t.lossFactor()
	t.tape.LossScale = t.scale
	n := t.rounds()
	if t.pipe != nil {
		if err := t.pipelined(src, from, n); err != nil {
			return batchSums{}, err
		}
		n = 0
	}
	for k := range n {
		if t.shard != nil {
			t.beginRound(k)
		} else if err := ctx.Err(); err != nil {
			return batchSums{}, err
		}
		if err := t.micro(src, from, t.microOfRank(k), k == 0); err != nil {
			return batchSums{}, err
		}
	}
	t.enter(Summing)
	if t.shard != nil {
		return t.settle(src, from)
	}
	for _, p := range t.model.Params() {
		if !p.HasGrad() && !p.Frozen {
			device.NegativeZero(t.dev, &p.Grad) // the loss does not use it, and it holds an old gradient
		}
	}
	if t.measuresNoise() {
		t.blockSquares = t.squaresOfBlocks() / (t.scale * t.scale)
	}
	return t.sum(src, from, t.squaredNorm()), nil
}

// block returns the number of micro-batches that a rank sums before it sends their gradient.
func (t *Trainer) block() int {
	if t.shard == nil {
		return t.cfg.Parallel.SumBlock
	}
	return t.shard.Block
}

// rounds returns the largest number of micro-batches that any rank has in the current step.
func (t *Trainer) rounds() int {
	round := t.block() * t.mesh.Replicas
	return t.accum/round*t.block() + min(t.block(), t.accum%round)
}

// microOfRank returns the number, within the step, of this rank's micro-batch k.
func (t *Trainer) microOfRank(k int) int {
	return (k/t.block()*t.mesh.Replicas+t.mesh.Data)*t.block() + k%t.block()
}

// beginRound begins micro-batch k of every rank.
func (t *Trainer) beginRound(k int) {
	block, ranks := t.block(), t.mesh.Replicas
	first := k / block * block * ranks            // of the round
	left := (t.accum - first + block - 1) / block // blocks
	t.shard.Begin(t.progress.Step+1, k/block, min(left, ranks)*t.mesh.Context, left <= ranks)
	t.shard.Next(k%block == 0, k%block+1 == min(block, t.accum-first))
}

// prepare reads micro-batch i of the batch at from.
func (t *Trainer) prepare(src dataset.Source, from uint64, i int) error {
	t.enter(Reading)
	if err := t.load(src, t.firstSample(from, i)); err != nil {
		return err
	}
	t.enter(Forward)
	token := t.outer.ofStep(i) * t.rows * t.model.Config.Context
	t.batch.Seq.Noise = autograd.Noise{Seed: t.cfg.Seed, Step: t.progress.Step + 1, Row: token}
	t.batch.FirstLabel = uint64(token)
	t.tape.LossScale = t.scale * t.factor(i)
	t.tape.Untargeted = 1 - float64(t.data.Valid())/float64(len(t.data.Targets))
	return nil
}

// micro computes the gradient of this group's micro-batch i, if this rank has it, and adds it to the gradients before.
// first says whether this is the first micro-batch of each rank.
func (t *Trainer) micro(src dataset.Source, from uint64, i int, first bool) error {
	present := i < t.accum
	if present {
		if err := t.prepare(src, from, i); err != nil {
			return err
		}
	}
	if t.shard == nil {
		t.fold.begin(i)
	}
	record, err := t.rehearse(present, first)
	if err == nil {
		err = t.propagate(present, true, record)
	}
	if err == nil && record != nil && present {
		err = t.compare()
	}
	if err != nil {
		return err
	}
	t.enter(Summing)
	if t.shard == nil {
		t.fold.end(t.dev, i, t.accum, precision.WireKey{Seed: t.cfg.Seed, Step: t.progress.Step + 1})
	}
	t.tape.LossScale = t.scale
	if present {
		t.micros = append(t.micros, t.measure(src, t.firstSample(from, i)))
	}
	return nil
}

// firstSample returns the first sample of this group's micro-batch i, in the batch at from.
func (t *Trainer) firstSample(from uint64, i int) uint64 {
	return from + uint64(t.outer.ofStep(i)*t.rows)
}

// measure returns the sums of the current micro-batch, whose samples start at first.
func (t *Trainer) measure(src dataset.Source, first uint64) microSums {
	m := microSums{routing: t.tape.Routing}
	m.flops = t.outline.BatchFLOPs(t.full) // counted here, while an accelerator is still computing
	if t.teacher != nil {
		m.divergence = t.dev.Sum(t.batch.Teacher.KL)
		m.flops += t.teacher.BatchForwardFLOPs(t.full)
	}
	m.loss, m.targets = t.dev.Sum(&t.batch.Losses), t.data.Valid()
	if _, mixed := src.(ManySources); mixed {
		m.rows = t.rowLosses()
	}
	if t.batch.ZLoss != 0 {
		t.normed = append(t.normed[:0], &t.batch.LogZ)
		m.squaredLogZ = t.squares.Sum(t.dev, t.normed...)
	}
	return m
}

// sum folds the sums of the micro-batches of the batch at from.
func (t *Trainer) sum(src dataset.Source, from uint64, squares float64) (sums batchSums) {
	mixed, ok := src.(ManySources)
	if ok = ok && !t.sampled(); ok { // losses of sampled labels say nothing about the data
		clear(t.sources)
	}
	for i := range t.micros {
		m := &t.micros[i]
		sums.add(m)
		if ok {
			t.addSources(mixed, t.firstSample(from, i), m.rows)
		}
	}
	sums.squares = squares
	if t.measuresNoise() {
		sums.blocks = t.blockSquares
		for block := range slices.Chunk(t.micros, t.cfg.Parallel.SumBlock) {
			targets := 0.0
			for i := range block {
				targets += float64(block[i].targets)
			}
			sums.blockTargets += targets * targets
		}
	}
	return sums
}
