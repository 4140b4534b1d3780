package conformance

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// The kernels of a mixture of experts.

// A routed holds the tensors of a call of Route, with the results of the formulas.
type routed struct {
	n, experts, k                              int
	logits, weights, chosen, logZ, sums, count *tensor.Tensor
	normalise                                  bool
}

func (s *scope) routed() routed {
	r := routed{n: s.size("N"), experts: s.size("E")}
	r.k = rapid.IntRange(1, min(r.experts, 9)).Draw(s.T, "K")
	r.normalise = rapid.Bool().Draw(s.T, "normalise")
	r.logits, r.sums = s.random(s.wide, r.n, r.experts), s.random(s.wide, r.experts)
	if rapid.IntRange(0, 3).Draw(s.T, "ties") == 0 {
		for i := range r.logits.Len() {
			r.logits.SetFloat64(i, math.Round(r.logits.Float64(i)))
		}
	}
	r.weights, r.chosen, r.logZ = s.empty(s.wide, r.n, r.k), s.empty(tensor.I32, r.n, r.k), s.empty(s.wide, r.n)
	return r
}

func route(s *scope) call {
	r := s.routed()
	c := call{
		run: func(d device.Device) { d.Route(r.weights, r.chosen, r.logZ, r.sums, r.logits, r.normalise) },
		out: []*tensor.Tensor{r.weights, r.chosen, r.logZ, r.sums}, factor: 4, terms: largest(r.logits),
	}
	c.formulas(routeOf[float64](r), routeOf[float32](r))
	return c
}

func routeOf[T tensor.Number](r routed) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		p, logZ := softmax(read[T](r.logits, w), r.experts)
		chosen := Choose(read[float64](r.logits, 0), r.experts, r.k)
		weights := weightsOf(p, chosen, r)
		sums := read[T](r.sums, w)
		for n := range r.n {
			axpy(sums, 1, p[n*r.experts:][:r.experts])
		}
		list := make([]T, len(chosen))
		for i, e := range chosen {
			list[i] = T(e)
		}
		return [][]T{weights, list, logZ, sums}
	}
}

// softmax returns the softmax of each row of x, and the logarithm of its denominator.
func softmax[T tensor.Number](x []T, cols int) (p, logZ []T) {
	p = make([]T, len(x))
	for r := 0; r < len(x); r += cols {
		top := slices.Max(x[r : r+cols])
		var sum T
		for c := range cols {
			p[r+c] = exp(x[r+c] - top)
			sum += p[r+c]
		}
		for c := range cols {
			p[r+c] /= sum
		}
		logZ = append(logZ, T(math.Log(float64(sum)))+top)
	}
	return p, logZ
}

// Choose returns the numbers of the k largest elements of each row, the largest first and the lower number first
// among equals.
func Choose(x []float64, cols, k int) (chosen []int) {
	for r := 0; r < len(x); r += cols {
		numbers := make([]int, cols)
		for i := range numbers {
			numbers[i] = i
		}
		slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(x[r+b], x[r+a]) })
		chosen = append(chosen, numbers[:k]...)
	}
	return chosen
}

// weightsOf returns the weights of the chosen experts, given all probabilities.
func weightsOf[T tensor.Number](p []T, chosen []int, r routed) []T {
	weights := make([]T, len(chosen))
	for n := range r.n {
		sum := T(0)
		for j := n * r.k; j < (n+1)*r.k; j++ {
			weights[j] = p[n*r.experts+chosen[j]]
			sum += weights[j]
		}
		for j := n * r.k; r.normalise && j < (n+1)*r.k; j++ {
			weights[j] /= sum
		}
	}
	return weights
}

// routeGrad draws tensors as Route could have written them.
func routeGrad(s *scope) call {
	r := s.routed()
	all := routeOf[float64](r)(0)
	for i, v := range all[0] {
		r.weights.SetFloat64(i, v)
		r.chosen.I32()[i] = int32(all[1][i])
	}
	for i, v := range all[2] {
		r.logZ.SetFloat64(i, v)
	}
	r.count = s.integers(r.experts, 3*r.n)
	dweights, dlogits := s.random(s.wide, r.n, r.k), s.empty(s.wide, r.n, r.experts)
	o := device.RouteOptions{Normalise: r.normalise, Balance: s.factor("balance", 0.01), ZLoss: s.factor("z-loss", 0.1)}
	c := call{
		run: func(d device.Device) {
			d.RouteGrad(dlogits, dweights, r.weights, r.chosen, r.logZ, r.count, r.logits, o)
		},
		out:    []*tensor.Tensor{dlogits},
		factor: 4,
		// p = exp(x − log Z) has as many units of error as the logits are large
		terms: (1 + largest(r.logits)) * (float64(r.k)*largest(dweights) + o.Balance*float64(3*r.n)),
	}
	c.formulas(routeGradOf[float64](r, dweights, o), routeGradOf[float32](r, dweights, o))
	return c
}

// factor draws 0 or a factor.
func (s *scope) factor(name string, x float64) float64 {
	return rapid.SampledFrom([]float64{0, x}).Draw(s.T, name)
}

func routeGradOf[T tensor.Number](r routed, dweights *tensor.Tensor, o device.RouteOptions) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		p, logZ := softmax(read[T](r.logits, w), r.experts)
		dw, d := read[T](dweights, w), make([]T, len(p))
		for n := range r.n {
			row, dp := p[n*r.experts:][:r.experts], d[n*r.experts:][:r.experts]
			for e, count := range r.count.I32() {
				dp[e] = T(o.Balance) * T(count)
			}
			sum, mean := T(1), T(0)
			chosen := r.chosen.I32()[n*r.k:][:r.k]
			if r.normalise {
				sum = 0
				for _, e := range chosen {
					sum += row[e]
				}
				for j, e := range chosen {
					mean += dw[n*r.k+j] * row[e] / sum
				}
			}
			for j, e := range chosen {
				dp[e] += (dw[n*r.k+j] - mean) / sum
			}
			along := dot(row, dp)
			for e := range dp {
				dp[e] = row[e] * (dp[e] - along + 2*T(o.ZLoss)*logZ[n])
			}
		}
		return [][]T{d}
	}
}

func dispatch(s *scope) call {
	n, k, e := s.size("N"), rapid.IntRange(1, 9).Draw(s.T, "K"), s.size("E")
	experts := s.integers(n*k, e)
	order, place, counts := s.empty(tensor.I32, n*k), s.empty(tensor.I32, n*k), s.empty(tensor.I32, e)
	c := call{
		run: func(d device.Device) { d.Dispatch(order, place, counts, experts) },
		out: []*tensor.Tensor{order, place, counts},
	}
	c.exact = func(uint64) [][]float64 {
		at, count := make([]float64, n*k), make([]float64, e)
		sorted := Dispatch(experts.I32())
		order := make([]float64, n*k)
		for i, choice := range sorted {
			order[i], at[choice] = float64(choice), float64(i)
			count[experts.I32()[choice]]++
		}
		return [][]float64{order, at, count}
	}
	c.naive = c.exact
	return c
}

// Dispatch returns the choices sorted by expert.
func Dispatch(experts []int32) []int {
	order := make([]int, len(experts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(experts[a] - experts[b]) })
	return order
}

// permutation returns the numbers below n in some order.
func (s *scope) permutation(n int) *tensor.Tensor {
	keys, list := s.integers(n, 1<<20), s.empty(tensor.I32, n)
	for i, at := range Dispatch(keys.I32()) {
		list.I32()[i] = int32(at)
	}
	return list
}

func takeRows(s *scope) call {
	n, k, cols := s.size("N"), rapid.IntRange(1, 5).Draw(s.T, "K"), s.size("D")
	rows := s.size("M") // of them, any, and any number of times
	src, order := s.random(s.storage("src"), n, cols), s.integers(rows, n*k)
	for i := range order.I32() {
		if rapid.IntRange(0, 3).Draw(s.T, "elsewhere") == 0 {
			order.I32()[i] = device.Elsewhere
		}
	}
	dst := s.empty(s.storage("dst"), rows, cols)
	return exactly(func(d device.Device) { d.TakeRows(dst, src, order, k) }, dst, func(i int) float64 {
		if at := order.I32()[i/cols]; at != device.Elsewhere {
			return src.Float64(int(at)/k*cols + i%cols)
		}
		return 0
	})
}

func mixRows(s *scope) call {
	n, k, cols := s.size("N"), rapid.IntRange(1, 5).Draw(s.T, "K"), s.size("D")
	src, place := s.random(s.storage("src"), n*k, cols), s.permutation(n*k)
	dst, add := s.empty(s.storage("dst"), n, cols), rapid.Bool().Draw(s.T, "add")
	if add {
		s.fill(dst)
	}
	var weights *tensor.Tensor
	if rapid.Bool().Draw(s.T, "weighed") {
		weights = s.random(s.wide, n, k)
	}
	c := call{run: func(d device.Device) { d.MixRows(dst, src, weights, place, add) }, out: []*tensor.Tensor{dst}}
	c.formulas(mixRowsOf[float64](dst, src, weights, place, add), mixRowsOf[float32](dst, src, weights, place, add))
	return c
}

func mixRowsOf[T tensor.Number](dst, src, weights, place *tensor.Tensor, add bool) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		rows, cols, k := read[T](src, w), dst.Cols(), place.Len()/dst.Rows()
		sum := make([]T, dst.Len())
		if add {
			sum = read[T](dst, w)
		}
		for c, at := range place.I32() {
			factor := T(1)
			if weights != nil {
				factor = read[T](weights, w)[c]
			}
			axpy(sum[c/k*cols:][:cols], factor, rows[int(at)*cols:])
		}
		return [][]T{sum}
	}
}

func weighRows(s *scope) call {
	n, k, cols := s.size("N"), rapid.IntRange(1, 5).Draw(s.T, "K"), s.size("F")
	dx, x := s.random(s.storage("dx"), n*k, cols), s.random(s.storage("x"), n*k, cols)
	weights, dweights, order := s.random(s.wide, n, k), s.empty(s.wide, n, k), s.permutation(n*k)
	c := call{
		run: func(d device.Device) { d.WeighRows(dweights, dx, x, weights, order) },
		out: []*tensor.Tensor{dweights, dx, x}, factor: 4,
	}
	c.formulas(weighRowsOf[float64](dx, x, weights, order), weighRowsOf[float32](dx, x, weights, order))
	return c
}

func weighRowsOf[T tensor.Number](dx, x, weights, order *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		u, v, factors, cols := read[T](dx, w), read[T](x, w), read[T](weights, w), x.Cols()
		dweights := make([]T, len(factors))
		for i, c := range order.I32() {
			row, other := u[i*cols:][:cols], v[i*cols:][:cols]
			dweights[c] = dot(row, other)
			for k := range cols {
				row[k] *= factors[c]
				other[k] *= factors[c]
			}
		}
		return [][]T{dweights, u, v}
	}
}

func gateRows(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	dst, src, gates := s.random(s.storage("dst"), n, cols), s.random(s.storage("src"), n, cols), s.random(s.wide, n)
	c := call{run: func(d device.Device) { d.GateRows(dst, src, gates) }, out: []*tensor.Tensor{dst}}
	c.formulas(gateRowsOf[float64](dst, src, gates), gateRowsOf[float32](dst, src, gates))
	return c
}

func gateRowsOf[T tensor.Number](dst, src, gates *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y, x, cols := read[T](dst, w), read[T](src, w), dst.Cols()
		for n, g := range read[T](gates, w) {
			axpy(y[n*cols:][:cols], 1/(1+exp(-g)), x[n*cols:])
		}
		return [][]T{y}
	}
}

func gateRowsGrad(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	dy, src, gates := s.random(s.storage("dy"), n, cols), s.random(s.storage("src"), n, cols), s.random(s.wide, n)
	dsrc, dgates := s.empty(s.storage("dsrc"), n, cols), s.empty(s.wide, n)
	if rapid.Bool().Draw(s.T, "in place") {
		dsrc = src
	}
	c := call{
		run: func(d device.Device) { d.GateRowsGrad(dsrc, dgates, dy, src, gates) },
		out: []*tensor.Tensor{dsrc, dgates}, factor: 4,
	}
	c.formulas(gateRowsGradOf[float64](dy, src, gates), gateRowsGradOf[float32](dy, src, gates))
	return c
}

func gateRowsGradOf[T tensor.Number](dy, src, gates *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		d, x, cols := read[T](dy, w), read[T](src, w), src.Cols()
		var dgates []T
		for n, g := range read[T](gates, w) {
			s := 1 / (1 + exp(-g))
			row := d[n*cols:][:cols]
			dgates = append(dgates, s*(1-s)*dot(row, x[n*cols:][:cols]))
			for c := range row {
				row[c] *= s
			}
		}
		return [][]T{d, dgates}
	}
}

// manyChoices has more choices than a device sorts at once, and an expert that no token chose.
func manyChoices(t *testing.T, d bench, _, _ tensor.DType) {
	const n, k, e = 3001, 3, 11
	list := make([]int32, n*k)
	for i := range list {
		list[i] = int32(i * i % (e - 1))
	}
	experts, order := d.place(tensor.Of(list, n, k)), d.place(tensor.Of(make([]int32, n*k)))
	place, counts := d.place(tensor.Of(make([]int32, n*k))), d.place(tensor.Of(make([]int32, e)))
	d.Dispatch(order, place, counts, experts)
	d.wait(t)
	for i, want := range Dispatch(list) {
		if got := order.I32()[i]; int(got) != want || place.I32()[want] != int32(i) {
			t.Fatalf("place %d has choice %d, whose place is %d; want choice %d", i, got, place.I32()[got], want)
		}
		counts.I32()[list[want]]--
	}
	for e, c := range counts.I32() {
		if c != 0 {
			t.Errorf("the count of expert %d is off by %d", e, c)
		}
	}
}

// routeOfNaN checks that any logits choose different, existing experts, and that NaN is chosen last.
func routeOfNaN(t *testing.T, d bench, _, wide tensor.DType) {
	nan, inf := math.NaN(), math.Inf(1)
	logits := d.of(wide, []float64{nan, 1, nan, 2, nan, nan, nan, nan, -inf, inf, nan, -inf, 0, 0, 0, 0}, 4, 4)
	weights, logZ, sums := d.of(wide, make([]float64, 12), 4, 3), d.of(wide, make([]float64, 4)),
		d.of(wide, make([]float64, 4))
	experts := d.place(tensor.Of(make([]int32, 12), 4, 3))
	d.Route(weights, experts, logZ, sums, logits, true)
	d.wait(t)
	if want := []int32{3, 1, 0, 0, 1, 2, 1, 0, 2, 0, 1, 2}; !slices.Equal(experts.I32(), want) {
		t.Errorf("the experts are %v, want %v", experts.I32(), want)
	}
}
