package machine

import (
	"math"
	"slices"
	"strings"

	"anneal/device"
)

// rates predict how long calls take with a number of threads.
//
// Calls of one kernel and storage are a class. The time of a call is a sum of costs that are at least 0, fitted to the
// samples of its class by least squares of relative errors (cost.go):
//
//	product    launch + a·operations + b·M·N (storing) + c·M·K + d·K·N (packing)
//	attention  launch + a·operations + b·M·N·K (loading, tiles at the diagonal) + c·M·N
//	others     launch + a·bytes
//
// times a correction: the mean ratio of the samples to that sum, where samples of similar sizes weigh more. The
// correction models the effects of caches, which no sum of costs can. Sizes beyond all samples have the correction of
// the nearest.
type rates struct {
	classes map[string]*class
	kernels map[string]*class // of all storages
	rest    *class            // all kernels that memory bounds
}

type class struct {
	costs   []float64
	samples []Sample
	over    []float64 // log of each sample's time over the sum of costs

	places      [][]float64 // of the samples
	first, last []float64   // the corners of their places
}

// Rates returns a function that predicts the seconds of a call with a number of threads, and whether anything like it
// was measured. Between the numbers of threads that were measured, the reciprocal of the number is interpolated.
func (p *Profile) Rates(threads int) func(device.Call) (seconds float64, known bool) {
	var list []*rates
	for i := range p.Sections {
		list = append(list, newRates(p.Sections[i].Samples))
	}
	below, above := 0, len(list)-1
	for i, s := range p.Sections {
		if s.Threads <= threads {
			below = i
		}
	}
	for i := len(list) - 1; i >= 0 && p.Sections[i].Threads >= threads; i-- {
		above = i
	}
	from, to := float64(p.Sections[below].Threads), float64(p.Sections[above].Threads)
	share := 0.0
	if from < to {
		share = (1/from - 1/float64(threads)) / (1/from - 1/to)
	}
	return func(c device.Call) (float64, bool) {
		s, known := list[below].seconds(c)
		if share == 0 || !known {
			return s, known
		}
		more, known := list[above].seconds(c)
		return (1-share)*s + share*more, known
	}
}

// RatesBeside is Rates for one of several ranks of this machine that make the same calls at the same time, each with
// so many threads. They share its memory: a call that memory bounds takes at least as long as one call that moves the
// bytes of all ranks with all their threads.
func (p *Profile) RatesBeside(ranks, threads int) func(device.Call) (seconds float64, known bool) {
	alone, together := p.Rates(threads), p.Rates(ranks*threads)
	if ranks == 1 {
		return alone
	}
	return func(c device.Call) (float64, bool) {
		s, known := alone(c)
		if c.Ops > 0 || !known {
			return s, known
		}
		c.Bytes *= float64(ranks)
		all, _ := together(c)
		return max(s, all), true
	}
}

func newRates(samples []Sample) *rates {
	r := &rates{map[string]*class{}, map[string]*class{}, &class{}}
	add := func(to map[string]*class, key string, s Sample) {
		if to[key] == nil {
			to[key] = &class{}
		}
		to[key].samples = append(to[key].samples, s)
	}
	for _, s := range samples {
		if s.Seconds <= 0 {
			continue
		}
		add(r.classes, classOf(s.Call), s)
		add(r.kernels, familyOf(s.Call), s)
		if s.Ops == 0 {
			r.rest.samples = append(r.rest.samples, s)
		}
	}
	for _, all := range []map[string]*class{r.classes, r.kernels} {
		for _, c := range all {
			c.fit()
		}
	}
	r.rest.fit()
	return r
}

func classOf(c device.Call) string { return c.Kernel + " " + c.Types }

// familyOf returns the class of a call regardless of the storage of its tensors; for products, the format of the
// operands still counts.
func familyOf(c device.Call) string {
	if isProduct(c) {
		return c.Kernel + c.Types[strings.LastIndexByte(c.Types, ' '):]
	}
	return c.Kernel
}

func isProduct(c device.Call) bool { return strings.HasPrefix(c.Kernel, "MatMul") }

// fewest is the least number of samples of a class. A class with fewer is replaced by the class of all storages.
const fewest = 3

// seconds predicts a call. A kernel that was not measured takes as long as others that move as many bytes, but
// products and attention cannot be predicted in this way.
func (r *rates) seconds(c device.Call) (s float64, known bool) {
	x := r.of(c)
	if x == nil {
		return 0, false
	}
	return x.seconds(c), true
}

// of returns the class that decides for a call; nil if nothing like it was measured.
func (r *rates) of(c device.Call) *class {
	one, family := r.classes[classOf(c)], r.kernels[familyOf(c)]
	switch {
	case one != nil && (len(one.samples) >= fewest || len(one.samples) == len(family.samples)):
		return one
	case family != nil:
		return family
	case c.Ops == 0 && len(r.rest.samples) > 0:
		return r.rest
	}
	return nil
}

// features are the quantities of a call that cost time.
func features(c device.Call) []float64 {
	m, n, k := float64(c.M), float64(c.N), float64(c.K)
	switch {
	case c.Ops > 0 && isProduct(c):
		return []float64{1, c.Ops, m * n, m * k, k * n}
	case c.Ops > 0:
		return []float64{1, c.Ops, m * n * k, m * n}
	}
	return []float64{1, c.Bytes}
}

// place returns the position of a call among the calls of its class: the logarithms of its sizes.
func place(c device.Call) []float64 {
	if isProduct(c) {
		return []float64{math.Log(float64(c.M)), math.Log(float64(c.N)), math.Log(float64(c.K))}
	}
	if c.Ops > 0 {
		return []float64{math.Log(c.Ops / float64(c.M*c.N*c.K)), math.Log(float64(c.K))}
	}
	return []float64{math.Log(max(c.Bytes, 1))}
}

func (x *class) fit() {
	if len(x.samples) == 0 {
		return
	}
	var rows [][]float64
	for _, s := range x.samples {
		row := features(s.Call)
		few := len(x.samples) < 2*len(row) // then only operations, or bytes, have a cost of their own
		for i := range row {
			if row[i] /= s.Seconds; few && i != 1 {
				row[i] = 0
			}
		}
		rows = append(rows, row)
	}
	x.costs = fitCosts(rows)
	for _, s := range x.samples {
		x.over = append(x.over, math.Log(s.Seconds/x.sum(s.Call)))
		x.places = append(x.places, place(s.Call))
	}
	x.first, x.last = slices.Clone(x.places[0]), slices.Clone(x.places[0])
	for _, at := range x.places {
		for k, p := range at {
			x.first[k], x.last[k] = min(x.first[k], p), max(x.last[k], p)
		}
	}
}

func (x *class) sum(c device.Call) float64 {
	t := 0.0
	for i, f := range features(c) {
		t += x.costs[i] * f
	}
	return max(t, 1e-9)
}

// nearness is the distance, in logarithms, at which the weight of a sample has fallen to 60 %; prior is the weight of
// no correction.
const nearness, prior = 0.35, 0.1

func (x *class) seconds(c device.Call) float64 {
	at, weights, over := place(c), prior, 0.0
	for k := range at {
		at[k] = min(max(at[k], x.first[k]), x.last[k])
	}
	for i, sample := range x.places {
		d := 0.0
		for k, p := range sample {
			d += (p - at[k]) * (p - at[k])
		}
		w := math.Exp(-d / (2 * nearness * nearness))
		weights, over = weights+w, over+w*x.over[i]
	}
	return x.sum(c) * math.Exp(over/weights)
}
