package flash

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// blocksOf cuts queries first, first+step, … below end into blocks of 64 that see the keys that keys returns.
func blocksOf(first, step, end int, keys func(q device.Strip) []device.KeyRange) (blocks []device.QueryBlock) {
	for ; first < end; first += 64 * step {
		q := device.Strip{First: first, Step: step, Count: min(64, (end-first+step-1)/step)}
		blocks = append(blocks, device.QueryBlock{Queries: q, Keys: keys(q)})
	}
	return blocks
}

// window returns the layout in which a query sees keys keys: itself and those just before it.
func window(keys, length int) *device.Layout {
	return &device.Layout{Len: length,
		Graphs: []device.Graph{{Blocks: blocksOf(0, 1, length, func(q device.Strip) []device.KeyRange {
			first := max(0, q.First+1-keys)
			return []device.KeyRange{{Strip: device.Strip{First: first, Step: 1, Count: last(q) + 1 - first},
				Far: keys}}
		})}}}
}

// dilated returns a layout of two graphs, each of three branches that overlap: segments of 8·r tokens of which every
// r-th counts, r = 1, 2, 4. Odd heads begin at 1.
func dilated(length int) *device.Layout {
	l := &device.Layout{Len: length, Graphs: []device.Graph{{Overlap: true}, {Overlap: true}}, Head: []int{0, 1, 0, 1}}
	for g := range l.Graphs {
		for r := 1; r <= 4; r *= 2 {
			for from := 0; from < length; from += 8 * r {
				l.Graphs[g].Blocks = append(l.Graphs[g].Blocks,
					blocksOf(from+g%r, r, min(from+8*r, length), func(q device.Strip) []device.KeyRange {
						return []device.KeyRange{{Strip: device.Strip{First: from + g%r, Step: r, Count: 8},
							Far: math.MaxInt}}
					})...)
			}
		}
	}
	return l
}

// drawProblem draws an attention of any shape with any layout, with or without documents and ALiBi.
func drawProblem(t *rapid.T, dt tensor.DType) *problem {
	rows := rapid.IntRange(1, 2).Draw(t, "rows")
	length := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(60, 200)).Draw(t, "T")
	kv := rapid.IntRange(1, 2).Draw(t, "K")
	heads := device.Heads{
		Q: kv * rapid.IntRange(1, 5).Draw(t, "H/K"), KV: kv,
		Size: rapid.SampledFrom([]int{1, 2, 5, 16, 19, 32, 63, 64, 65}).Draw(t, "E"),
	}
	var start []int32
	if rapid.Bool().Draw(t, "documents") {
		start = starts(t, rows, length)
	}
	p := newProblem(dt, rows, length, heads, start, rapid.Uint64Range(0, 99).Draw(t, "seed"))
	p.mask.Layout = conformance.DrawLayout(t, length, heads.Q)
	if rapid.Bool().Draw(t, "ALiBi") {
		p.mask.Slopes = rapid.SliceOfN(rapid.Float64Range(0, 1), heads.Q, heads.Q).Draw(t, "slopes")
	}
	return p
}

// The tiled algorithm in float64 agrees with the formula for any pattern, documents, groups of heads and ALiBi (ATT-2,
// ATT-10). The other tiers are compared with the formula in the conformance suite.
func TestLayoutsEqualNaiveInFloat64(t *testing.T) {
	e := newEngine(t, isa.Generic, 2)
	rapid.Check(t, func(rt *rapid.T) {
		e.f64.blockK = 4 * rapid.SampledFrom([]int{1, 3, 16}).Draw(rt, "blockK/4")
		p := drawProblem(rt, tensor.F64)
		p.run(e)
		out, lse, dqkv := p.reference()
		for _, c := range []struct {
			name string
			got  *tensor.Tensor
			want []float64
		}{{"out", p.out, out}, {"lse", p.lse, lse}, {"dqkv", p.dqkv, dqkv}} {
			if far := farthest(values(c.got), c.want); !(far <= 1e-12*max(1, float64(p.heads.Size))) {
				rt.Fatalf("%s is off by %g", c.name, far)
			}
		}
	})
}

// A layout that lists all keys before each query is full causal attention, bit for bit.
func TestLayoutOfEverythingIsFullAttention(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			heads := device.Heads{Q: 6, KV: 2, Size: 40}
			p := newProblem(dt, 2, 203, heads, nil, 4)
			p.run(newEngine(t, tier, 2))
			want := slices.Concat(p.out.Raw(), p.lse.Raw(), p.dqkv.Raw())
			p.mask.Layout = window(203, 203)
			p.run(newEngine(t, tier, 2))
			if !slices.Equal(slices.Concat(p.out.Raw(), p.lse.Raw(), p.dqkv.Raw()), want) {
				t.Errorf("%v, %v: other bits", tier, dt)
			}
		}
	}
}

// Queries whose ranges are empty give zeros and no gradient, although other queries of their block see keys.
func TestQueriesWithoutKeysAreZero(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			p := newProblem(dt, 1, 70, device.Heads{Q: 2, KV: 1, Size: 24}, nil, 2)
			p.mask.Slopes = []float64{0.5, 0.1}
			p.mask.Layout = &device.Layout{Len: 70,
				Graphs: []device.Graph{{Blocks: blocksOf(0, 1, 70, func(device.Strip) []device.KeyRange {
					return []device.KeyRange{{Strip: device.Strip{First: 8, Step: 2, Count: 20}, Near: 3, Far: 20}}
				})}}}
			p.run(newEngine(t, tier, 2))
			seen := conformance.Seen(p.mask.Layout, 0, 70)
			for i := range 70 {
				alone := !slices.ContainsFunc(seen[i], func(n int) bool { return n > 0 })
				if got := math.IsInf(p.lse.Float64(i), -1); got != alone {
					t.Fatalf("%v, %v: lse of query %d is %v", tier, dt, i, p.lse.Float64(i))
				}
				for c := range 48 {
					if o, dq := p.out.Float64(i*48+c), p.dqkv.Float64(i*96+c); alone && (o != 0 || dq != 0) ||
						o != o || dq != dq {
						t.Fatalf("%v, %v: out %v and dq %v of query %d", tier, dt, o, dq, i)
					}
				}
			}
		}
	}
}

// One key-value head, so that backward is a wave: whole rows, windows and strided columns, blocks that overlap.
func TestBitsOfLayoutsDoNotDependOnThreads(t *testing.T) {
	const length = 600
	columns := &device.Layout{Len: length,
		Graphs: []device.Graph{{Blocks: blocksOf(0, 1, length, func(q device.Strip) []device.KeyRange {
			return []device.KeyRange{{Strip: device.Strip{First: 3, Step: 9, Count: 60}, Near: 64, Far: math.MaxInt},
				{Strip: q, Far: 64}}
		})}}}
	for _, tier := range isa.Tiers()[:max(1, len(isa.Tiers())-1)] { // portable Go takes the same path, slowly
		for name, l := range map[string]*device.Layout{
			"full": nil, "window": window(290, length), "columns": columns, "dilated": dilated(length),
		} {
			var first []byte
			for _, threads := range []int{1, 2, 5} {
				p := newProblem(tensor.BF16, 1, length, device.Heads{Q: 4, KV: 1, Size: 32}, nil, 9)
				p.mask.Layout, p.mask.Slopes = l, []float64{0.5, 0.25, 0.1, 0}
				e := newEngine(t, tier, threads)
				for range 2 {
					p.run(e)
					got := slices.Concat(p.out.Raw(), p.lse.Raw(), p.dqkv.Raw())
					if first == nil {
						first = got
					}
					if !slices.Equal(got, first) {
						t.Errorf("%v, %s: %d threads give other bits than 1", tier, name, threads)
					}
				}
			}
		}
	}
}

func TestLayoutsAllocateNothing(t *testing.T) {
	for name, l := range map[string]*device.Layout{"window": window(90, 200), "dilated": dilated(200)} {
		e := newEngine(t, isa.Tiers()[0], 2)
		p := newProblem(tensor.BF16, 1, 200, device.Heads{Q: 4, KV: 2, Size: 32}, make([]int32, 200), 1)
		p.mask.Layout, p.mask.Slopes = l, []float64{0.5, 0.25, 0.1, 0}
		p.run(e)
		if n := filetest.AllocsPerRun(5, func() { p.run(e) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// ALiBi's terms are hundreds of times larger than the differences of scores, and cancel. No bit of these differences
// may be lost, in whatever order a tier adds products.
func TestSlopesCancelExactly(t *testing.T) {
	for _, tier := range isa.Tiers() {
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			p := newProblem(dt, 1, 250, device.Heads{Q: 1, KV: 1, Size: 1, Scale: 0.07}, nil, 5)
			p.mask.Slopes = []float64{1}
			p.run(newEngine(t, tier, 1))
			_, lse, _ := p.reference()
			if far := farthest(values(p.lse), lse); !(far <= 4e-6) {
				t.Errorf("%v, %v: log-sum-exp is off by %.2g", tier, dt, far)
			}
		}
	}
}
