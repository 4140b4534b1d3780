package dataset

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/internal/filetest"
)

// drawMix draws weights that are constant or move, some of them 0.
func drawMix(t *rapid.T, sources int, constant bool) Mix {
	weights := func(name string) []float64 {
		w := make([]float64, sources)
		for i := range w {
			if rapid.IntRange(0, 3).Draw(t, name) > 0 {
				w[i] = math.Exp(rapid.Float64Range(-7, 2).Draw(t, name))
			}
		}
		if slices.Max(w) == 0 {
			w[rapid.IntRange(0, sources-1).Draw(t, name)] = 1
		}
		return w
	}
	m := Mix{{Weights: weights("weights")}}
	for !constant && len(m) < 4 && rapid.Bool().Draw(t, "more") {
		last := &m[len(m)-1]
		next := MixPhase{From: last.From + rapid.Uint64Range(0, 5000).Draw(t, "from"), Weights: weights("weights")}
		if rapid.Bool().Draw(t, "moves") {
			last.To = next.Weights
		}
		m = append(m, next)
	}
	return m
}

// integral is ∫ weight of each source over the samples from…to of a phase, by the trapezoid that it is.
func integral(m Mix, phase int, length, x float64) []float64 {
	from := Normalised(m[phase].Weights)
	q := make([]float64, len(from))
	to := from
	if m[phase].To != nil {
		to = Normalised(m[phase].To)
	}
	for i := range q {
		at := from[i]
		if m[phase].To != nil {
			at += (to[i] - from[i]) * x / length
		}
		q[i] = x * (from[i] + at) / 2
	}
	return q
}

// At every end of a block each source has given its weight's worth of samples, within one, counted from the beginning
// of the phase, and never less than before; a weight of 0 gives nothing.
func TestMixStaysWithinOneSample(t *testing.T) {
	worst := 0.0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "sources")
		m := drawMix(t, n, false)
		x := newMixer(m, 1)
		end := m[len(m)-1].From + 6000
		for p := range m {
			start := (m[p].From + 63) / 64 * 64
			stop := end
			if p+1 < len(m) {
				stop = (m[p+1].From + 63) / 64 * 64
			}
			base := x.drawn(start)
			before := base
			for k := start + 64; k <= stop; k += 64 {
				drawn := x.drawn(k)
				sum := uint64(0)
				for i, q := range integral(m, p, float64(stop-start), float64(k-start)) {
					sum += drawn[i]
					off := math.Abs(float64(drawn[i]-base[i]) - q)
					worst = max(worst, off)
					if off > 1+1e-6 || drawn[i] < before[i] {
						t.Fatalf("phase %d, sample %d: source %d has given %d samples of %.4f, %d a block before",
							p, k, i, drawn[i]-base[i], q, before[i]-base[i])
					}
				}
				if sum != k {
					t.Fatalf("%d samples after %d", sum, k)
				}
				before = drawn
			}
		}
	})
	t.Logf("at most %.4f samples from the weights", worst)
}

// Each of the first samples is the next one of its source, whatever is asked in between.
func TestMixDrawsEachSampleOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMix(t, rapid.IntRange(1, 5).Draw(t, "sources"), false)
		seed := rapid.Uint64().Draw(t, "seed")
		x, other := newMixer(m, seed), newMixer(m, seed)
		r := rand.New(rand.NewPCG(seed, 1))
		next := make([]uint64, len(m[0].Weights))
		for k := range uint64(3000) {
			if got := x.drawn(k); !slices.Equal(got, next) {
				t.Fatalf("drawn(%d) = %v, %v have come", k, got, next)
			}
			if r.IntN(50) == 0 {
				x.at(r.Uint64N(20000))
				other.drawn(r.Uint64N(20000))
			}
			s, i := x.at(k)
			if i != next[s] {
				t.Fatalf("sample %d is number %d of source %d, want %d", k, i, s, next[s])
			}
			next[s]++
			if s2, i2 := other.at(k); s2 != s || i2 != i {
				t.Fatalf("sample %d is %d/%d for one reader and %d/%d for another", k, s, i, s2, i2)
			}
		}
	})
}

// What comes before a phase does not depend on it.
func TestMixCanChangeWhatIsYetToCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "sources")
		m := drawMix(t, n, false)
		m[len(m)-1].To = nil
		at := m[len(m)-1].From + rapid.Uint64Range(1, 3000).Draw(t, "at")
		longer := append(slices.Clone(m), MixPhase{From: at, Weights: drawMix(t, n, true)[0].Weights})
		x, y := newMixer(m, 5), newMixer(longer, 5)
		for k := range at {
			s, i := x.at(k)
			if s2, i2 := y.at(k); s != s2 || i != i2 {
				t.Fatalf("sample %d is %d/%d, with other weights from %d on %d/%d", k, s, i, at, s2, i2)
			}
		}
	})
}

func TestMixRefusesWhatIsNone(t *testing.T) {
	for want, m := range map[string]Mix{
		"from sample 0":   {},
		"from sample 0 ":  {{From: 64, Weights: []float64{1, 1}}},
		"1 weights for 2": {{Weights: []float64{1}}},
		"3 weights for 2": {{Weights: []float64{1, 1}, To: []float64{1, 1, 1}},
			{From: 64, Weights: []float64{1, 1}}},
		"all weights are":      {{Weights: []float64{0, 0}}},
		"-1 is not":            {{Weights: []float64{2, -1}}},
		"NaN is not":           {{Weights: []float64{2, math.NaN()}}},
		"+Inf is not":          {{Weights: []float64{2, math.Inf(1)}}},
		"their end is missing": {{Weights: []float64{2, 1}, To: []float64{1, 1}}},
		"ascending order": {{Weights: []float64{2, 1}}, {From: 100, Weights: []float64{1, 1}},
			{From: 50, Weights: []float64{1, 1}}},
		"at most 1717986": {{Weights: []float64{2, 1}}, {From: 1 << 40, Weights: []float64{1, 1}}},
	} {
		if err := m.check(2); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v: %v, want %q", m, err, want)
		}
	}
}

// Sizes 1, 10, 100: natural weights are the sizes, a high temperature makes them even, and between them a weight is
// its size to the power of 1/T.
func TestTemperature(t *testing.T) {
	sizes := []float64{1, 10, 100}
	for _, c := range []struct{ t, want0, ratio float64 }{
		{1, 1.0 / 111, 10}, {2, 1 / (1 + math.Sqrt(10) + 10), math.Sqrt(10)}, {1e9, 1.0 / 3, 1},
	} {
		w := Temperature(sizes, c.t)
		if math.Abs(w[0]-c.want0) > 1e-8 || math.Abs(w[1]/w[0]-c.ratio) > 1e-6 || math.Abs(w[2]/w[1]-c.ratio) > 1e-6 {
			t.Errorf("T = %v: %v, want the first %v and a ratio of %v", c.t, w, c.want0, c.ratio)
		}
	}
	if w := Temperature(sizes, 1e-3); w[0] != 0 || w[1] != 0 || w[2] != 1 { // 100^1000 is no number
		t.Errorf("T = 0.001: %v, want all for the largest", w)
	}
}

// By hand: of a budget of 100, sources of 4 and 10 take 8 and 20 in two epochs, and the two large ones share the 72
// that are left. With a budget beyond all caps every source is at its cap; with a small one all are even.
func TestUniMax(t *testing.T) {
	for _, c := range []struct{ sizes, want []float64 }{
		{[]float64{500, 4, 10, 300}, []float64{.36, .08, .20, .36}},
		{[]float64{1, 2, 5}, []float64{.125, .25, .625}},
		{[]float64{100, 200, 300}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{[]float64{30, 15, 30}, []float64{.35, .30, .35}},
	} {
		for i, w := range UniMax(c.sizes, 100, 2) {
			if math.Abs(w-c.want[i]) > 1e-12 {
				t.Errorf("sizes %v: weight %d is %v, want %v", c.sizes, i, w, c.want[i])
			}
		}
	}
	if w := UniMax([]float64{5, 1}, 0, 2); w[0] != 0.5 || w[1] != 0.5 {
		t.Errorf("a budget of nothing is shared as %v", w)
	}
}

// No source passes the cap while the budget fits, and of two sources the larger never gets less.
func TestUniMaxKeepsItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 1, 8).Draw(t, "sizes")
		epochs := rapid.Float64Range(.5, 8).Draw(t, "epochs")
		sum := 0.0
		for _, n := range sizes {
			sum += n
		}
		budget := rapid.Float64Range(.01, 1).Draw(t, "part") * sum * epochs
		w := UniMax(sizes, budget, epochs)
		for i := range w {
			if w[i]*budget > sizes[i]*epochs*(1+1e-9) {
				t.Fatalf("source %d of %v gets %v, more than %v epochs", i, sizes[i], w[i]*budget, epochs)
			}
			for j := range w {
				if sizes[i] < sizes[j] && w[i] > w[j]*(1+1e-9) {
					t.Fatalf("sources of %v and %v get %v and %v", sizes[i], sizes[j], w[i], w[j])
				}
			}
		}
	})
}

// mixedLoader returns a loader over datasets of so many documents each.
func mixedLoader(t testing.TB, docs []int, kind Packing, context int, seed uint64, m Mix) *Mixed {
	t.Helper()
	var sets []*Dataset
	for i, n := range docs {
		sets = append(sets, build(t, randomDocs(uint64(i), n, 60), BuildOptions{ShardTokens: 700}))
	}
	l, err := NewMixed(sets, kind, context, seed, func([]uint64) (Mix, error) { return m, nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sameRow(a *Batch, i int, b *Batch, j int) bool {
	n := a.Context
	return slices.Equal(a.Tokens[i*n:][:n], b.Tokens[j*n:][:n]) &&
		slices.Equal(a.Targets[i*n:][:n], b.Targets[j*n:][:n]) &&
		slices.Equal(a.DocStart[i*n:][:n], b.DocStart[j*n:][:n])
}

// A run over several sources that is killed and goes on in other batches, with other numbers of readers, and leaves
// samples out, reads each row of each source once an epoch, less what it leaves out, and each row is one that the
// source alone would serve.
func TestMixedReadsEachRowOnce(t *testing.T) {
	m := Mix{
		{Weights: []float64{3, 1, 0}}, {From: 250, Weights: []float64{3, 1, 0}, To: []float64{0, 1, 4}},
		{From: 500, Weights: []float64{0, 1, 4}},
	}
	for _, kind := range []Packing{Concat, BestFit, Pad} {
		loaders := mixedLoader(t, []int{60, 25, 12}, kind, 16, 3, m)
		fresh := func() *Mixed {
			var sets []*Dataset
			for _, l := range loaders.loaders {
				sets = append(sets, l.d)
			}
			l, err := NewMixed(sets, kind, 16, 3, func([]uint64) (Mix, error) { return m, nil })
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		const total = 900
		rapid.Check(t, func(t *rapid.T) {
			var skip SkipList
			for range rapid.IntRange(0, 3).Draw(t, "skips") {
				from := rapid.Uint64Range(0, total).Draw(t, "from")
				skip = skip.Without(from, from+rapid.Uint64Range(1, 100).Draw(t, "length"))
			}
			seen := make([]map[uint64]int, 3)
			for i := range seen {
				seen[i] = map[uint64]int{}
			}
			state := State{}
			for state.Sample < total {
				step := uint64(rapid.IntRange(1, 200).Draw(t, "step"))
				readers := uint64(rapid.IntRange(1, 3).Draw(t, "readers"))
				for r := range readers { // each takes every readers-th sample
					l := fresh()
					l.Skip(skip)
					if state.Context > 0 {
						if err := l.Check(state); err != nil {
							t.Fatal(err)
						}
					}
					var b, alone Batch
					for k := state.Sample + r; k < state.Sample+step; k += readers {
						s, i := l.At(k)
						if err := l.Batch(&b, k, 1); err != nil {
							t.Fatal(err)
						}
						if err := l.loaders[s].Batch(&alone, i, 1); err != nil {
							t.Fatal(err)
						}
						if !sameRow(&b, 0, &alone, 0) {
							t.Fatalf("sample %d is not sample %d of source %d", k, i, s)
						}
						epoch := i / l.loaders[s].windows
						seen[s][epoch*l.loaders[s].windows+l.loaders[s].At(i)]++
					}
				}
				l := fresh()
				l.Skip(skip)
				raw, err := json.Marshal(l.State(state.Sample + step))
				if err != nil || json.Unmarshal(raw, &state) != nil {
					t.Fatal(err)
				}
			}
			l := fresh()
			l.Skip(skip)
			out := make([]uint64, 3) // left out
			for k := range l.end(state.Sample) {
				if !slices.ContainsFunc(skip, func(r SkipRange) bool { return r.From <= k && k < r.To }) {
					continue
				}
				s, i := l.mix.at(k)
				out[s]++
				row := i/l.loaders[s].windows*l.loaders[s].windows + l.loaders[s].At(i)
				if seen[s][row] != 0 {
					t.Fatalf("row %d of source %d is left out, and was read", row, s)
				}
			}
			for s, n := range l.Drawn(state.Sample) {
				if uint64(len(seen[s])) != n {
					t.Fatalf("%d samples of source %d, %d of its rows", n, s, len(seen[s]))
				}
				for row, times := range seen[s] {
					if rows := l.loaders[s].windows; times != 1 || row/rows > (n+out[s]-1)/rows {
						t.Fatalf("row %d of source %d came %d times in %d samples of %d rows", row, s, times, n, rows)
					}
				}
			}
		})
	}
}

// While all samples come from the first source, a mix is that dataset: the same rows and the same state, both ways.
func TestMixBeginsAsOneDataset(t *testing.T) {
	m := Mix{{Weights: []float64{1, 0}}, {From: 320, Weights: []float64{1, 1}}}
	mixed := mixedLoader(t, []int{40, 30}, BestFit, 16, 9, m)
	one, err := mixed.loaders[0].d.PackedLoader(BestFit, 16, 9)
	if err != nil {
		t.Fatal(err)
	}
	skip := SkipList{{10, 20}, {100, 130}}
	one.Skip(skip)
	mixed.Skip(skip)
	var a, b Batch
	if err := one.Batch(&a, 0, 280); err != nil {
		t.Fatal(err)
	}
	if err := mixed.Batch(&b, 0, 281); err != nil {
		t.Fatal(err)
	}
	for i := range 280 {
		if !sameRow(&a, i, &b, i) {
			t.Fatalf("sample %d differs", i)
		}
	}
	if x, y := one.State(280), mixed.State(280); x != y || one.Check(y) != nil || mixed.Check(x) != nil {
		t.Errorf("states %+v and %+v; %v, %v", x, y, one.Check(y), mixed.Check(x))
	}
	if x := mixed.State(281); one.Check(x) == nil || mixed.Check(one.State(281)) == nil {
		t.Errorf("sample 280 comes after the change: %+v", x)
	}
}

func TestMixedCheckRefusesAnotherPast(t *testing.T) {
	m := Mix{{Weights: []float64{3, 1, 0}}, {From: 640, Weights: []float64{1, 1, 1}}}
	l := mixedLoader(t, []int{40, 30, 20}, BestFit, 16, 9, m)
	s := l.State(512)
	raw, _ := json.Marshal(State{
		Data: s.Data, Context: 1 << 20, Seed: math.MaxUint64, Sample: mixSamples, Packing: s.Packing,
		Order: "ffffffff", Mix: s.Mix,
	})
	if len(raw) >= 200 {
		t.Errorf("a state can have %d bytes: %s", len(raw), raw)
	}
	set := func(i int) *Dataset { return l.loaders[i].d }
	other := build(t, randomDocs(7, 20, 60), BuildOptions{})
	for _, c := range []struct {
		name string
		sets []*Dataset
		kind Packing
		ctx  int
		seed uint64
		mix  Mix
		want string
	}{
		{"the same", []*Dataset{set(0), set(1), set(2)}, BestFit, 16, 9, m, ""},
		{"other weights to come", []*Dataset{set(0), set(1), set(2)}, BestFit, 16, 9,
			Mix{m[0], {From: 512, Weights: []float64{0, 0, 1}}}, ""},
		{"another source to come", []*Dataset{set(0), set(1), other, set(2)}, BestFit, 16, 9,
			Mix{{Weights: []float64{3, 1, 0, 0}}, {From: 512, Weights: []float64{1, 1, 1, 1}}}, ""},
		{"other weights", []*Dataset{set(0), set(1), set(2)}, BestFit, 16, 9, Mix{{Weights: []float64{3, 2, 0}}},
			"only future weights"},
		{"an earlier change", []*Dataset{set(0), set(1), set(2)}, BestFit, 16, 9,
			Mix{m[0], {From: 256, Weights: []float64{1, 1, 1}}}, "restore the data sets of"},
		{"another source", []*Dataset{set(0), other, set(2)}, BestFit, 16, 9, m, "restore the data sets of"},
		{"another order of sources", []*Dataset{set(1), set(0), set(2)}, BestFit, 16, 9, m, "restore the data sets of"},
		{"one source alone", []*Dataset{set(0)}, BestFit, 16, 9, Mix{{Weights: []float64{1}}}, "from several sources"},
		{"another packing", []*Dataset{set(0), set(1), set(2)}, Pad, 16, 9, m, "data.packing"},
		{"another packing and the weights of its rows", []*Dataset{set(0), set(1), set(2)}, Pad, 16, 9,
			Mix{{Weights: []float64{3, 2, 0}}}, "data.packing"},
		{"another context", []*Dataset{set(0), set(1), set(2)}, BestFit, 15, 9, m, "restore the context"},
		{"another seed", []*Dataset{set(0), set(1), set(2)}, BestFit, 16, 8, m, "restore the seed"},
	} {
		here, err := NewMixed(c.sets, c.kind, c.ctx, c.seed, func([]uint64) (Mix, error) { return c.mix, nil })
		if err != nil {
			t.Fatal(err)
		}
		err = here.Check(s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	plain, _ := set(0).PackedLoader(BestFit, 16, 9)
	if err := plain.Check(s); err == nil || !strings.Contains(err.Error(), "from several sources") {
		t.Errorf("the first source alone: %v", err)
	}
	l.Skip(SkipList{{10, 20}})
	if err := l.Check(s); err == nil || !strings.Contains(err.Error(), "skipped") {
		t.Errorf("samples left out: %v", err)
	}
}

// Sources with different tokenizers are refused, both named; so is a mix that numbers samples beyond its limit.
func TestMixedRefuses(t *testing.T) {
	a, b := build(t, randomDocs(1, 9, 60), BuildOptions{}),
		build(t, randomDocs(2, 9, 60), BuildOptions{Tokenizer: Tokenizer{
			Path: "b.json", SHA256: [32]byte{7}, Vocab: byteTokenizer.Vocab, EOT: byteTokenizer.EOT,
		}})
	even := func([]uint64) (Mix, error) { return Mix{{Weights: []float64{1, 1}}}, nil }
	if _, err := NewMixed([]*Dataset{a, b}, Concat, 8, 1, even); err == nil || !strings.Contains(err.Error(), a.Dir) ||
		!strings.Contains(err.Error(), b.Dir) {
		t.Errorf("two tokenizers: %v", err)
	}
	l, err := NewMixed([]*Dataset{a, a}, Concat, 8, 1, even)
	if err != nil {
		t.Fatal(err)
	}
	l.Skip(SkipList{{0, 1 << 60}})
	var batch Batch
	if err := l.Batch(&batch, 0, 1); err == nil || !strings.Contains(err.Error(), "beyond") {
		t.Errorf("sample 2^60: %v", err)
	}
}

// Reading allocates nothing but the marks.
func TestMixedBatchAllocatesNothing(t *testing.T) {
	l := mixedLoader(t, []int{40, 30}, Concat, 16, 9, Mix{{Weights: []float64{2, 1}}})
	var b Batch
	k := uint64(0)
	read := func() {
		if err := l.Batch(&b, k, 8); err != nil {
			t.Fatal(err)
		}
		k += 8
	}
	read()
	if n := filetest.AllocsPerRun(500, read); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func BenchmarkMixSeek(b *testing.B) {
	m := Mix{{Weights: []float64{.31, .25, .2, .14, .1}}}
	for b.Loop() {
		x := newMixer(m, 1)
		x.at(1e7)
	}
}

func BenchmarkMixAt(b *testing.B) {
	x, k := newMixer(Mix{{Weights: []float64{.31, .25, .2, .14, .1}}}, 1), uint64(0)
	for b.Loop() {
		x.at(k)
		k++
	}
}

// A mix in random order can take up an order that has not yet made a difference.
func TestMixTakesUpALaterOrder(t *testing.T) {
	sets := []*Dataset{scored(t), scored(t)}
	open := func(o Order) *Mixed {
		l, err := NewMixed(sets, Concat, 16, 4,
			func([]uint64) (Mix, error) { return Mix{{Weights: []float64{3, 1}}}, nil })
		if err == nil {
			err = l.Arrange(o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	late := Order{Run: 400, Last: Last{Scores: "b", High: true, Samples: 40, Best: .3, Since: 300}}
	if err := open(late).Check(open(Order{}).State(300)); err != nil {
		t.Errorf("an order from sample 300 on: %v", err)
	}
	if err := open(late).Check(open(Order{}).State(400)); err == nil {
		t.Error("an order from sample 300 on is taken up at the end")
	}
}
