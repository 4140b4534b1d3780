package train

import (
	"context"
	"errors"

	"anneal/attention"
	"anneal/autograd"
	"anneal/dataset"
	"anneal/tasks"
)

// LogLikelihoods scores sequences independently, as documents packed into rows. A beginning that neighbours in the
// list share is computed once, unless some layer does not support branches (model.Config.Branches). Several ranks
// score one batch of rows each at the same time, and all return the same result. Ranks that share layers or rows
// cannot score sequences (validate refuses that). progress receives the number of tokens scored, counting a shared
// beginning for each sequence; it may be nil. LogLikelihoods needs no memory beyond the evaluator's.
func (e *Evaluator) LogLikelihoods(ctx context.Context, list []tasks.Sequence,
	progress func(tokens int64)) ([]tasks.Likelihood, error) {
	e.length = e.model.Config.Context
	defer func(documents bool) {
		e.documents, e.batch.Behind, e.batch.Seq.Branches = documents, false, nil
	}(e.documents)
	e.documents = true
	packing := tasks.Packing{
		Length: e.length, Alone: !packs(e.model.Config.Attention), Share: e.model.Config.Branches(),
	}
	src := packed{list, packing.Rows(list), e.length, e.model.Config.Vocab}
	results := make([]tasks.Likelihood, len(list))
	alone, read := e.world.Size() == 1, int64(0)
	for first := 0; first < len(src.rows); first += e.rows * e.mesh.Replicas {
		if err := ctx.Err(); err != nil && alone {
			return nil, err
		}
		mine, err := e.likelihoods(src, first+e.mesh.Data*e.rows)
		if err != nil {
			return nil, err
		}
		all := [][]float64{mine}
		if !alone {
			stopped := 0.0
			if ctx.Err() != nil {
				stopped = 1
			}
			if all, err = e.shareFloats(append(mine, stopped)...); err != nil {
				return nil, err
			}
		}
		ended := false
		for rank, x := range all {
			if !alone {
				ended, x = ended || x[len(x)-1] > 0, x[:len(x)-1]
			}
			read += src.put(results, first+e.mesh.At(rank).Data*e.rows, e.rows, x)
		}
		if ended {
			return nil, errors.Join(ctx.Err(), context.Canceled)
		}
		if progress != nil {
			progress(read)
		}
	}
	return results, nil
}

// LogLikelihoods is Evaluator.LogLikelihoods. Schedule-free AdamW is measured at its average.
func (t *Trainer) LogLikelihoods(ctx context.Context, list []tasks.Sequence,
	progress func(tokens int64)) (r []tasks.Likelihood, err error) {
	if !isScheduleFree(t.cfg.Optimizer) {
		return t.Evaluator.LogLikelihoods(ctx, list, progress)
	}
	err = t.at(t.trained, func() (err error) {
		r, err = t.Evaluator.LogLikelihoods(ctx, list, progress)
		return err
	})
	return r, err
}

// packs reports whether attention within a document is the same wherever the document is in its row.
func packs(patterns attention.Patterns) bool {
	for _, p := range patterns {
		switch p.(type) {
		case attention.Full, attention.Window, attention.Linear:
		default:
			return false
		}
	}
	return true
}

// likelihoods scores the batch of rows from first on. For each sequence, in the order of the places, it returns the
// log-likelihood, and the largest amount by which the likeliest token's logit exceeds that of the sequence's token. If
// there is no such row, it only takes part in the ranks' exchanges.
func (e *Evaluator) likelihoods(src packed, first int) ([]float64, error) {
	if first >= len(src.rows) {
		return nil, e.loss(false)
	}
	e.batch.Seq.Branches = src.branches(e.batch.Seq.Branches[:0], first, e.rows)
	if err := e.load(src, uint64(first)); err != nil {
		return nil, err
	}
	e.batch.Behind = true
	if err := e.loss(true); err != nil {
		return nil, err
	}
	var list []float64
	losses := e.batch.HostLosses(e.dev)
	src.each(first, e.rows, func(_, from, to int) {
		sum := 0.0
		for i := from; i < to; i++ {
			sum -= losses.Float64(i)
		}
		list = append(list, sum, 0)
	})
	behind, at := e.batch.HostBehind(e.dev), 1 // overwrites losses
	src.each(first, e.rows, func(_, from, to int) {
		for i := from; i < to; i++ {
			list[at] = max(list[at], behind.Float64(i))
		}
		at += 2
	})
	return list, Wait(e.dev)
}

// packed presents rows of sequences as the samples of a data set.
type packed struct {
	list          []tasks.Sequence
	rows          [][]tasks.Place
	length, vocab int
}

func (p packed) Context() int { return p.length }
func (p packed) Vocab() int   { return p.vocab }

// Batch fills b. Padding follows the sequences of a row and the last row.
func (p packed) Batch(b *dataset.Batch, first uint64, rows int) error {
	b.Resize(rows, p.length)
	for r := range rows {
		row, end := r*p.length, 0
		if n := int(first) + r; n < len(p.rows) {
			for _, place := range p.rows[n] {
				s := p.list[place.Sequence]
				for i := place.Shared; i < len(s.IDs)-1; i++ {
					end = place.At + i + 1 - place.Shared
					at := row + end - 1
					b.Tokens[at], b.Targets[at], b.DocStart[at] = uint32(s.IDs[i]), dataset.Ignore, int32(place.At)
					if i+1 >= s.From {
						b.Targets[at] = s.IDs[i+1]
					}
				}
			}
		}
		b.Pad(r, end, 0)
	}
	return nil
}

// branches appends the sequences of some rows that share another sequence's beginning to list.
func (p packed) branches(list []autograd.Branch, first, rows int) []autograd.Branch {
	for n := first; n < min(first+rows, len(p.rows)); n++ {
		for _, place := range p.rows[n] {
			if row := (n - first) * p.length; place.Shared > 0 {
				list = append(list, autograd.Branch{
					At: row + place.At, Tokens: len(p.list[place.Sequence].IDs) - 1 - place.Shared,
					Base: row + place.Base, First: place.Shared,
				})
			}
		}
	}
	return list
}

// each visits the sequences of some rows with the positions [from, to) of their targets in the batch.
func (p packed) each(first, rows int, visit func(sequence, from, to int)) {
	for n := first; n < min(first+rows, len(p.rows)); n++ {
		for _, place := range p.rows[n] {
			s, at := p.list[place.Sequence], (n-first)*p.length+place.At-place.Shared
			visit(place.Sequence, at+s.From-1, at+len(s.IDs)-1)
		}
	}
}

// put assigns the numbers of a batch to its sequences, and returns the number of tokens of these sequences.
func (p packed) put(results []tasks.Likelihood, first, rows int, x []float64) (tokens int64) {
	p.each(first, rows, func(i, _, _ int) {
		results[i] = tasks.Likelihood{LogProb: x[0], Greedy: x[1] == 0}
		x, tokens = x[2:], tokens+int64(len(p.list[i].IDs)-1)
	})
	return tokens
}
