package fasttext

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// QuantizeOptions are the options of fastText's quantize command.
type QuantizeOptions struct {
	Cutoff int  // rows of the input to keep, those with the largest norms; 0 keeps all
	Norms  bool // code the norms of rows separately (qnorm)
	Width  int  // columns per code (dsub): 2

	Threads int // 0 uses all processors; the result is the same
}

// Quantize makes a model several times smaller by product quantisation of its input matrix (Jégou et al. 2011; Joulin
// et al. 2016, arXiv 1612.03651). Each group of Width columns of a row is replaced by the number of one of 256
// centroids. The centroids are learnt by 25 rounds of k-means over at most 65,536 rows. Rows with small norms are
// dropped if Cutoff is set.
//
//	bytes per row: ⌈dim/Width⌉, and 1 more for the norm, instead of 4·dim
//
// Quantisation is lossy; measure the cost with `anneal data classifier eval`. Unlike the original, Quantize does not
// retrain the remaining rows (-retrain) and does not quantise the output matrix.
func (m *Model) Quantize(ctx context.Context, o QuantizeOptions) (*Model, error) {
	dim := int(m.args.Dim)
	switch {
	case m.Quantised():
		return nil, fmt.Errorf("the model is already quantised")
	case o.Width < 1 || o.Width > dim:
		return nil, fmt.Errorf("width %d is invalid for vectors of %d columns\n  try 2", o.Width, dim)
	case o.Cutoff < 0:
		return nil, fmt.Errorf("a cutoff of %d rows is invalid\n  try 100000, or 0 for all", o.Cutoff)
	case min(m.input.rows, cmp.Or(o.Cutoff, m.input.rows)) < centroids:
		return nil, fmt.Errorf("%d rows are too few to quantise: at least 256 are needed\n  use the model as it is", min(m.input.rows, cmp.Or(o.Cutoff, m.input.rows)))
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	d, input := m.dict, m.input
	if o.Cutoff > 0 && o.Cutoff < input.rows {
		d, input = m.cut(o.Cutoff)
	} else {
		input.dense = slices.Clone(input.dense)
	}
	q := quantizer{ctx: ctx, threads: o.Threads}
	if o.Norms {
		norms := make([]float32, input.rows)
		for i := range norms {
			row := input.row(i)
			norms[i] = norm(row)
			for j := range row {
				if norms[i] != 0 {
					row[j] /= norms[i]
				}
			}
		}
		parts, codes := q.code(matrix{rows: input.rows, cols: 1, dense: norms}, 1)
		input.norms, input.normCodes = parts[0].centroids, codes
	}
	input.parts, input.codes = q.code(input, o.Width)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	input.dense = nil
	out := newModel(m.args, d, input, m.output)
	d.args = &out.args
	return out, nil
}

func norm(row []float32) float32 {
	sum := 0.0
	for _, x := range row {
		sum += float64(x) * float64(x)
	}
	return float32(math.Sqrt(sum))
}

// cut keeps the rows with the largest norms, and the row of </s>.
func (m *Model) cut(rows int) (*dictionary, matrix) {
	norms := make([]float32, m.input.rows)
	order := make([]int, len(norms))
	for i := range norms {
		norms[i], order[i] = norm(m.input.row(i)), i
	}
	if end := m.dict.find([]byte(endOfLine), hashToken([]byte(endOfLine))); end >= 0 && end < m.dict.nwords {
		norms[end] = float32(math.Inf(1))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(norms[b], norms[a]) })
	words, grams := []int{}, []int{}
	for _, row := range order[:rows] {
		if row < m.dict.nwords {
			words = append(words, row)
		} else {
			grams = append(grams, row)
		}
	}
	slices.Sort(words)
	d := &dictionary{nwords: len(words), tokens: m.dict.tokens, pruned: newPrunedGrams(len(grams))}
	input := matrix{rows: rows, cols: m.input.cols}
	for _, w := range words {
		d.words, d.counts = append(d.words, m.dict.words[w]), append(d.counts, m.dict.counts[w])
		input.dense = append(input.dense, m.input.row(w)...)
	}
	d.words, d.counts = append(d.words, m.dict.words[m.dict.nwords:]...), append(d.counts, m.dict.counts[m.dict.nwords:]...)
	for i, g := range grams {
		d.pruned.set(int32(g-m.dict.nwords), int32(i))
		input.dense = append(input.dense, m.input.row(g)...)
	}
	d.index()
	return d, input
}

// quantizer learns centroids and assigns codes.
type quantizer struct {
	ctx     context.Context
	threads int
}

const (
	quantizeRows   = 256 * centroids // at most this many rows are used to learn centroids
	quantizeRounds = 25
	quantizeSplit  = 1e-7 // distance between the halves of a split centroid
)

// code learns the centroids of each group of width columns, and finds the nearest for each row.
func (q quantizer) code(m matrix, width int) ([]part, []byte) {
	parts := make([]part, (m.cols+width-1)/width)
	codes := make([]byte, m.rows*len(parts))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(q.threads, len(parts)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(parts) && q.ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				p := part{column: i * width, width: min(width, m.cols-i*width)}
				rng := rand.New(rand.NewPCG(uint64(i), uint64(width)))
				rows := rng.Perm(m.rows)[:min(m.rows, quantizeRows)]
				x := make([]float32, 0, len(rows)*p.width)
				for _, r := range rows {
					x = append(x, m.row(r)[p.column:][:p.width]...)
				}
				p.learn(q.ctx, x, rng)
				for r := range m.rows {
					codes[r*len(parts)+i] = p.nearest(m.row(r)[p.column:][:p.width])
				}
				parts[i] = p
			}
		})
	}
	group.Wait()
	return parts, codes
}

// learn computes the centroids by k-means. It starts from the first rows of x, which are in random order.
func (p *part) learn(ctx context.Context, x []float32, rng *rand.Rand) {
	w := p.width
	p.centroids = slices.Clone(x[:centroids*w])
	codes := make([]byte, len(x)/w)
	for range quantizeRounds {
		if ctx.Err() != nil {
			return
		}
		for i := range codes {
			codes[i] = p.nearest(x[i*w:][:w])
		}
		var sizes [centroids]int
		clear(p.centroids)
		for i, k := range codes {
			sizes[k]++
			for j, v := range x[i*w:][:w] {
				p.centroids[int(k)*w+j] += v
			}
		}
		for k, n := range sizes {
			for j := range w {
				if n > 0 {
					p.centroids[k*w+j] /= float32(n)
				}
			}
		}
		for k := range sizes {
			if sizes[k] == 0 {
				p.split(k, &sizes, len(codes), rng)
			}
		}
	}
}

// split gives an empty centroid half of the rows of another one, drawn with probability proportional to its size.
func (p *part) split(empty int, sizes *[centroids]int, n int, rng *rand.Rand) {
	full := 0
	for rng.Float64()*float64(n-centroids) >= float64(sizes[full]-1) {
		full = (full + 1) % centroids
	}
	w := p.width
	for j := range w {
		step := float32(quantizeSplit)
		if j%2 == 0 {
			step = -step
		}
		c := p.centroids[full*w+j]
		p.centroids[empty*w+j], p.centroids[full*w+j] = c+step, c-step
	}
	sizes[empty] = sizes[full] / 2
	sizes[full] -= sizes[empty]
}

// nearest returns the centroid nearest to x, the first of several equally near ones.
func (p *part) nearest(x []float32) byte {
	best, least := 0, float32(math.Inf(1))
	c := p.centroids
	switch p.width {
	case 1:
		for k, v := range c[:centroids] {
			d := x[0] - v
			if d = float32(d * d); d < least {
				best, least = k, d
			}
		}
	case 2:
		a, b := x[0], x[1]
		for k := range centroids {
			d, e := a-c[2*k], b-c[2*k+1]
			if d = float32(d*d) + float32(e*e); d < least {
				best, least = k, d
			}
		}
	default:
		for k := range centroids {
			sum := float32(0)
			for j, v := range c[k*p.width:][:p.width] {
				d := x[j] - v
				sum += float32(d * d)
			}
			if sum < least {
				best, least = k, sum
			}
		}
	}
	return byte(best)
}
