package fasttext

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// learn updates the output matrix from one example at learning rate lr, stores in e.grad the update for each of its
// input rows, and returns the loss.
//
//	row i of the output with the truth y and the score s:  α = lr·(y − s);  grad += α·V[i];  V[i] += α·h;  at the end grad ← grad/n
func (t *trainer) learn(e *example, lr float32) float32 {
	clear(e.grad)
	var rng rand.PCG
	rng.Seed(t.o.Seed, 1<<63|t.drawn)
	target := int(e.labels[0])
	if n := len(e.labels); n > 1 && t.o.Loss != OneVsAll {
		target = int(e.labels[rand.New(&rng).IntN(n)])
	}
	v := &t.m.output
	loss := float32(0)
	switch t.o.Loss {
	case Softmax:
		v.product(t.scores, e.hidden)
		softmax(t.scores)
		for i, s := range t.scores {
			y := float32(0)
			if i == target {
				y = 1
			}
			adjust(e, v.row(i), lr*(y-s))
		}
		loss = -smoothLog(t.scores[target])
	case OneVsAll:
		v.product(t.scores, e.hidden) // each row changes only after its own product
		for i, x := range t.scores {
			loss += logistic(e, v.row(i), x, slices.Contains(e.labels, int32(i)), lr)
		}
	case NegativeSampling:
		loss = t.logistic(e, target, true, lr)
		for range t.o.Neg {
			loss += t.logistic(e, t.draw(rand.New(&rng), target), false, lr)
		}
	case HierarchicalSoftmax:
		labels := v.rows
		for j := target; t.m.tree[j].parent >= 0; j = int(t.m.tree[j].parent) {
			loss += t.logistic(e, int(t.m.tree[j].parent)-labels, t.m.tree[j].binary, lr)
		}
	}
	scale := float32(1 / float64(len(e.rows)))
	for i := range e.grad {
		e.grad[i] *= scale
	}
	return loss
}

func (t *trainer) logistic(e *example, row int, truth bool, lr float32) float32 {
	return logistic(e, t.m.output.row(row), t.m.output.dot(e.hidden, row), truth, lr)
}

// logistic trains one row as a binary classifier. The product of the row with the hidden vector is x; truth is the
// target.
func logistic(e *example, row []float32, x float32, truth bool, lr float32) float32 {
	s, y := sigmoid(x), float32(0)
	if truth {
		y = 1
	}
	adjust(e, row, lr*(y-s))
	if !truth {
		s = 1 - s
	}
	return -smoothLog(s)
}

func adjust(e *example, row []float32, alpha float32) {
	grad, hidden := e.grad[:len(row)], e.hidden[:len(row)]
	for j, w := range row {
		grad[j] += float32(alpha * w)
		row[j] = w + float32(alpha*hidden[j])
	}
}

// draw returns a label other than the right one, with probability proportional to the square root of its count.
func (t *trainer) draw(rng *rand.Rand, right int) int {
	for {
		x := rng.Float64() * t.weights[len(t.weights)-1]
		if i := sort.SearchFloat64s(t.weights, math.Nextafter(x, math.Inf(1))); i != right && i < len(t.weights) {
			return i
		}
	}
}
