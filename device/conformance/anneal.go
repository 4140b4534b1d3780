package conformance

import (
	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// The kernels of the family anneal.

func reluSquared(s *scope) call {
	n, f := s.size("N"), s.size("F")
	x, act := s.random(s.storage("x"), n, f), s.empty(s.storage("act"), n, f)
	c := call{run: func(d device.Device) { d.ReLUSquared(act, x) }, out: []*tensor.Tensor{act}}
	c.formulas(reluSquaredOf[float64](x), reluSquaredOf[float32](x))
	return c
}

func reluSquaredOf[T tensor.Number](x *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y := read[T](x, w)
		for i, v := range y {
			y[i] = max(v, 0) * max(v, 0)
		}
		return [][]T{y}
	}
}

func reluSquaredGrad(s *scope) call {
	n, f := s.size("N"), s.size("F")
	x, dact, dx := s.random(s.storage("x"), n, f), s.random(s.storage("dact"), n, f), s.empty(s.storage("dx"), n, f)
	c := call{run: func(d device.Device) { d.ReLUSquaredGrad(dx, nil, dact, x) }, out: []*tensor.Tensor{dx}}
	c.formulas(reluSquaredGradOf[float64](dact, x), reluSquaredGradOf[float32](dact, x))
	return c
}

func reluSquaredGradOf[T tensor.Number](dact, x *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		d := read[T](dact, w)
		for i, v := range read[T](x, w) {
			d[i] *= 2 * max(v, 0)
		}
		return [][]T{d}
	}
}

func mixStreams(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	x, y, weights := s.random(s.wide, n, cols), s.random(s.wide, n, cols), s.random(s.wide, 2)
	c := call{run: func(d device.Device) { d.MixStreams(x, nil, y, weights) }, out: []*tensor.Tensor{x}}
	if rapid.Bool().Draw(s.T, "keeps") {
		kept := s.empty(s.storage("kept"), n, cols)
		c.run = func(d device.Device) { d.MixStreams(x, kept, y, weights) }
		c.out = append(c.out, kept)
	}
	c.formulas(mixStreamsOf[float64](x, y, weights), mixStreamsOf[float32](x, y, weights))
	return c
}

func mixStreamsOf[T tensor.Number](x, y, weights *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		before, u := read[T](x, w), read[T](weights, w)
		mixed := make([]T, len(before))
		axpy(mixed, u[0], before)
		axpy(mixed, u[1], read[T](y, w))
		return [][]T{mixed, read[T](x, 0)}
	}
}

func mixStreamsGrad(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	dx, dy, dweights := s.random(s.wide, n, cols), s.random(s.wide, n, cols), s.random(s.wide, 2)
	kept, y, weights := s.random(s.storage("kept"), n, cols), s.random(s.wide, n, cols), s.random(s.wide, 2)
	c := call{
		run:    func(d device.Device) { d.MixStreamsGrad(dx, dy, dweights, kept, y, weights) },
		out:    []*tensor.Tensor{dx, dy, dweights},
		factor: 4,
	}
	c.formulas(mixStreamsGradOf[float64](dx, dy, dweights, kept, y, weights),
		mixStreamsGradOf[float32](dx, dy, dweights, kept, y, weights))
	return c
}

func mixStreamsGradOf[T tensor.Number](dx, dy, dweights, kept, y, weights *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		d, u := read[T](dx, w), read[T](weights, w)
		ofX, ofY, ofWeights := make([]T, len(d)), read[T](dy, w), read[T](dweights, w)
		axpy(ofX, u[0], d)
		axpy(ofY, u[1], d)
		ofWeights[0] += dot(d, read[T](kept, w))
		ofWeights[1] += dot(d, read[T](y, w))
		return [][]T{ofX, ofY, ofWeights}
	}
}

func addValues(s *scope) call {
	heads, n, v := s.heads(false), s.size("N"), s.size("V")
	qkv, table := s.random(s.act, n, heads.Cols()), s.random(s.storage("table"), v, heads.KV*heads.Size)
	weight, ids := s.random(s.wide, 1), s.integers(n, v)
	c := call{run: func(d device.Device) { d.AddValues(qkv, table, weight, ids, heads) }, out: []*tensor.Tensor{qkv}}
	c.formulas(addValuesOf[float64](qkv, table, weight, ids, heads),
		addValuesOf[float32](qkv, table, weight, ids, heads))
	return c
}

func addValuesOf[T tensor.Number](qkv, table, weight, ids *tensor.Tensor, heads device.Heads) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y, rows, u := read[T](qkv, w), read[T](table, w), read[T](weight, w)
		for n, id := range ids.I32() {
			axpy(values(y, n, heads), u[0], row(rows, id, heads))
		}
		return [][]T{y}
	}
}

func addValuesGrad(s *scope) call {
	heads, n, v := s.heads(false), s.size("N"), s.size("V")
	dqkv, table := s.random(s.act, n, heads.Cols()), s.random(s.storage("table"), v, heads.KV*heads.Size)
	weight, ids := s.random(s.wide, 1), s.integers(n, v)
	dtable, dweight := s.random(s.wide, v, heads.KV*heads.Size), s.random(s.wide, 1)
	c := call{
		run:    func(d device.Device) { d.AddValuesGrad(dtable, dweight, dqkv, table, weight, ids, heads) },
		out:    []*tensor.Tensor{dtable, dweight},
		factor: 4,
		// The gradient of the weight sums the tokens' products, which may cancel.
		terms: largest(dqkv) * largest(table) * float64(table.Cols()),
	}
	c.formulas(addValuesGradOf[float64](dtable, dweight, dqkv, table, weight, ids, heads),
		addValuesGradOf[float32](dtable, dweight, dqkv, table, weight, ids, heads))
	return c
}

func addValuesGradOf[T tensor.Number](dtable, dweight, dqkv, table, weight, ids *tensor.Tensor,
	heads device.Heads) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		ofTable, ofWeight := read[T](dtable, w), read[T](dweight, w)
		d, rows, u := read[T](dqkv, w), read[T](table, w), read[T](weight, w)
		for n, id := range ids.I32() {
			dv := values(d, n, heads)
			axpy(row(ofTable, id, heads), u[0], dv)
			ofWeight[0] += dot(dv, row(rows, id, heads))
		}
		return [][]T{ofTable, ofWeight}
	}
}

// values returns the value heads of token n of qkv; row returns those of an id in a table.
func values[T tensor.Number](qkv []T, n int, heads device.Heads) []T {
	return qkv[n*heads.Cols()+(heads.Q+heads.KV)*heads.Size:][:heads.KV*heads.Size]
}

func row[T tensor.Number](table []T, id int32, heads device.Heads) []T {
	width := heads.KV * heads.Size
	return table[int(id)*width:][:width]
}
