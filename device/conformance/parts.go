package conformance

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// The kernels that put attention together from parts of the keys.

// runs draws runs of rows, their places in two matrices, and how many rows each of these needs at least.
func (s *scope) runs() (r device.Runs, to, from int) {
	r.Count, r.Rows, r.Cols = rapid.IntRange(1, 3).Draw(s.T, "runs"), s.size("rows"), s.size("columns")
	place := func(name string) (p device.Place, rows int) {
		p.Row = rapid.IntRange(0, 3).Draw(s.T, name+" row")
		p.Step = r.Rows + rapid.IntRange(0, 3).Draw(s.T, name+" step")
		p.Col = rapid.IntRange(0, 9).Draw(s.T, name+" column")
		return p, p.Row + (r.Count-1)*p.Step + r.Rows + rapid.IntRange(0, 2).Draw(s.T, name+" more rows")
	}
	r.To, to = place("to")
	r.From, from = place("from")
	return r, to, from
}

// each calls f for the rows of runs: the row in the destination, and that in the source.
func each(count, rows int, to, from device.Place, f func(to, from int)) {
	for i := range count {
		for k := range rows {
			f(to.Row+i*to.Step+k, from.Row+i*from.Step+k)
		}
	}
}

func copyRuns(s *scope) call {
	r, to, from := s.runs()
	r.Add = rapid.Bool().Draw(s.T, "add")
	dst := s.random(s.storage("dst"), to, r.To.Col+r.Cols+rapid.IntRange(0, 2).Draw(s.T, "more columns"))
	src := s.random(s.storage("src"), from, r.From.Col+r.Cols)
	want := read[float64](dst, 0)
	each(r.Count, r.Rows, r.To, r.From, func(to, from int) {
		for c := range r.Cols {
			at, x := to*dst.Cols()+r.To.Col+c, src.Float64(from*src.Cols()+r.From.Col+c)
			switch {
			case !r.Add:
				want[at] = x
			case s.wide == tensor.F64:
				want[at] += x
			default:
				want[at] = float64(float32(want[at]) + float32(x))
			}
		}
	})
	return exactly(func(d device.Device) { d.CopyRuns(dst, src, r) }, dst, func(i int) float64 { return want[i] })
}

// mergeAttention draws results; some of them have seen no keys, on one side or on both.
func mergeAttention(s *scope) call {
	heads := s.heads(false)
	r, to, from := s.runs()
	m := device.Merge{Count: r.Count, Rows: r.Rows, To: r.To, From: r.From, Fresh: rapid.Bool().Draw(s.T, "fresh")}
	m.To.Col, m.From.Col = 0, 0
	if rapid.Bool().Draw(s.T, "shifted") {
		for h := range heads.Q {
			m.Shift = append(m.Shift, -1.5*float64(h))
		}
	}
	cols := heads.Q * heads.Size
	out, part := s.random(s.storage("out"), to, cols), s.random(s.storage("part"), from, cols)
	lse, partLSE := s.random(s.wide, heads.Q, to), s.random(s.wide, heads.Q, from)
	for _, l := range []*tensor.Tensor{lse, partLSE} {
		for i := range l.Len() {
			switch i % 7 {
			case 2, 3:
				l.SetFloat64(i, math.Inf(-1))
			case 5:
				l.SetFloat64(i, 200*l.Float64(i))
			}
		}
	}
	c := call{
		run:   func(d device.Device) { d.MergeAttention(out, lse, part, partLSE, heads, m) },
		out:   []*tensor.Tensor{out, lse},
		terms: max(largest(out), largest(part)),
	}
	c.formulas(mergeOf[float64](out, lse, part, partLSE, heads, m), mergeOf[float32](out, lse, part, partLSE, heads, m))
	return c
}

func mergeOf[T tensor.Number](out, lse, part, partLSE *tensor.Tensor, heads device.Heads,
	m device.Merge) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		o, l, p, pl := read[T](out, w), read[T](lse, w), read[T](part, w), read[T](partLSE, w)
		each(m.Count, m.Rows, m.To, m.From, func(to, from int) {
			for h := range heads.Q {
				a, b := &l[h*out.Rows()+to], pl[h*part.Rows()+from]
				if m.Shift != nil {
					b += T(m.Shift[h])
				}
				y, x := o[(to*heads.Q+h)*heads.Size:][:heads.Size], p[(from*heads.Q+h)*heads.Size:][:heads.Size]
				*a = merge(y, x, *a, b, m.Fresh)
			}
		})
		return [][]T{o, l}
	}
}

// merge merges x, whose log-sum-exp is b, into y, whose log-sum-exp is a, and returns that of the merged result.
func merge[T tensor.Number](y, x []T, a, b T, fresh bool) T {
	none := func(l T) bool { return math.IsInf(float64(l), -1) }
	switch {
	case fresh || none(a) && !none(b):
		copy(y, x)
		return b
	case none(b):
		return a
	}
	top := max(a, b)
	p, q := exp(a-top), exp(b-top)
	for i := range y {
		y[i] = (p*y[i] + q*x[i]) / (p + q)
	}
	return top + T(math.Log(float64(p+q)))
}

// framesIgnoreWhatNobodySees checks rows as ring attention makes them, in which some tokens are only keys and the
// others only queries: the unused parts may hold any finite numbers without a change of results.
func framesIgnoreWhatNobodySees(t *testing.T, d bench, act, wide tensor.DType) {
	heads := device.Heads{Q: 2, KV: 1, Size: 24}
	cols, split := heads.Cols(), heads.Q*heads.Size
	for _, size := range []int{40, 64, 100} { // of a chunk of keys, before two of queries
		n := 3 * size
		mask := device.Mask{Len: n, Start: d.place(tensor.Of(make([]int32, n))), Layout: frameLayout(size)}
		var first [2][]float64
		for round, rest := range []float64{0, 1000} {
			fill := func(x *tensor.Tensor, hidden func(row, col int) bool) *tensor.Tensor {
				for i := range x.Len() {
					if hidden(i/x.Cols(), i%x.Cols()) {
						x.SetFloat64(i, rest)
					}
				}
				return x
			}
			key := func(row, _ int) bool { return row < size }
			qkv := fill(d.of(act, normal(n*cols, 70), n, cols),
				func(row, col int) bool { return (row < size) == (col < split) })
			dout := fill(d.of(act, normal(n*split, 71), n, split), key)
			out := d.of(act, make([]float64, n*split), n, split)
			lse := d.of(wide, make([]float64, heads.Q*n), heads.Q, n)
			dqkv := d.of(act, make([]float64, n*cols), n, cols)
			d.Attention(out, lse, qkv, heads, mask)
			d.wait(t)
			fill(out, key)
			fill(lse, func(_, col int) bool { return col < size })
			d.AttentionGrad(dqkv, dout, out, lse, qkv, heads, mask)
			d.wait(t)
			results := [2][]float64{}
			for i := range n * split {
				if i/split >= size {
					results[0] = append(results[0], out.Float64(i))
				}
			}
			for i := range n * cols {
				if (i/cols < size) == (i%cols >= split) {
					results[1] = append(results[1], dqkv.Float64(i))
				}
			}
			if round == 0 {
				first = results
			} else if !slices.Equal(results[0], first[0]) || !slices.Equal(results[1], first[1]) {
				t.Errorf("%v, chunks of %d: what nobody sees changes the result or the gradient", act, size)
			}
		}
	}
}

// frameLayout returns the layout of a chunk of keys before two chunks of queries.
func frameLayout(size int) *device.Layout {
	l := &device.Layout{Len: 3 * size, Graphs: make([]device.Graph, 1)}
	keys := []device.KeyRange{{Strip: device.Strip{Step: 1, Count: size}, Far: math.MaxInt}}
	for chunk := range 3 {
		for q := chunk * size; q < (chunk+1)*size; q += 64 {
			b := device.QueryBlock{Queries: device.Strip{First: q, Step: 1, Count: min(64, (chunk+1)*size-q)}}
			if chunk > 0 {
				b.Keys = keys
			}
			l.Graphs[0].Blocks = append(l.Graphs[0].Blocks, b)
		}
	}
	return l
}
