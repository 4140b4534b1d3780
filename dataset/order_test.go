package dataset

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// scored returns a data set of short and long documents with scores "a" and "b": many equal, some missing.
func scored(t testing.TB) *Dataset {
	t.Helper()
	d := build(t, randomDocs(11, 80, 60), BuildOptions{ShardTokens: 700})
	for i, name := range []string{"a", "b"} {
		v := make([]float32, d.Manifest.Train.Documents)
		for j := range v {
			h := mix(uint64(100*i + j + 1))
			if v[j] = float32(h%40) - 20; h>>32%9 == 0 {
				v[j] = float32(math.NaN())
			}
		}
		if err := d.WriteScores(Scores{Name: name, About: "made up", Values: v}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// anyOrder draws an order of a run of so many samples.
func anyOrder(t *rapid.T, run uint64) Order {
	o := Order{Run: run}
	if rapid.IntRange(0, 3).Draw(t, "warm-up") > 0 {
		o.First = First{
			Scores: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "first"), High: rapid.Bool().Draw(t, "high first"),
			Samples: rapid.Uint64Range(0, run).Draw(t, "w"),
			Start:   rapid.SampledFrom([]float64{0.01, 0.1, 0.5, 1}).Draw(t, "start"),
			Pacing:  rapid.SampledFrom([]Pacing{Linear, Root, Step}).Draw(t, "pacing"),
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "annealing") > 0 {
		o.Last = Last{
			Scores: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "last"), High: rapid.Bool().Draw(t, "high last"),
			Samples: rapid.Uint64Range(0, run-o.First.Samples).Draw(t, "a"),
			Best:    rapid.SampledFrom([]float64{0.01, 0.2, 1}).Draw(t, "best"),
		}
		o.Last.Since = rapid.Uint64Range(0, run-o.Last.Samples).Draw(t, "since")
	}
	return o
}

func anyPacked(t *rapid.T, d *Dataset, seed uint64) *Loader {
	kind := rapid.SampledFrom([]Packing{Concat, BestFit, Pad}).Draw(t, "packing")
	l, err := d.PackedLoader(kind, rapid.SampledFrom([]int{8, 33, 64}).Draw(t, "context"), seed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// again is a new loader of the same rows.
func (l *Loader) again(t *rapid.T, o Order) *Loader {
	kind := Concat
	if l.packed != nil {
		kind = l.packed.kind
	}
	n, err := l.d.PackedLoader(kind, l.context, l.seed)
	if err == nil {
		err = n.Arrange(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// naiveScores are the scores of rows by their definition: each token of a row is looked up in its document.
func naiveScores(t *rapid.T, l *Loader, name string) []float64 {
	s, err := l.d.ReadScores(name)
	if err != nil {
		t.Fatal(err)
	}
	document := make([]int, 0, l.stream.tokens) // of each token of the stream
	doc := 0
	l.stream.documents(func(start, end, _ uint64) {
		for range end - start {
			document = append(document, doc)
		}
		doc++
	})
	scores := make([]float64, l.windows)
	for r := range scores {
		var at []uint64 // the positions in the stream that the row holds
		if l.packed == nil {
			for i := range l.context {
				at = append(at, uint64(r*l.context+i))
			}
		} else {
			for p := l.packed.first(uint64(r)); p != noPiece; p = l.packed.after(p) {
				start, n := l.packed.piece(p)
				for i := range n {
					at = append(at, start+uint64(i))
				}
			}
		}
		sum, n := 0.0, 0.0
		for _, p := range at {
			if v := float64(s.Values[document[p]]); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		scores[r] = float64(float32(sum / n))
	}
	return scores
}

func TestScoreOfARowIsTheMeanOverItsTokens(t *testing.T) {
	d := scored(t)
	rapid.Check(t, func(t *rapid.T) {
		l := anyPacked(t, d, 1)
		got, err := l.rowScores("a")
		if err != nil {
			t.Fatal(err)
		}
		for r, want := range naiveScores(t, l, "a") {
			if float64(got[r]) != want && !(math.IsNaN(want) && got[r] != got[r]) &&
				math.Abs(float64(got[r])-want) > 1e-5 {
				t.Fatalf("row %d of %s: score %v, want %v", r, l.packing, got[r], want)
			}
		}
	})
}

// Whatever the order, each epoch holds each row once; no row of the warm-up is harder than its time admits; the last
// samples are among the best of what was left; epochs without either are as they were.
func TestAnyOrderHoldsEachRowOncePerEpoch(t *testing.T) {
	d := scored(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		plain := anyPacked(t, d, seed)
		n := plain.windows
		o := anyOrder(t, rapid.Uint64Range(1, 3*n+2).Draw(t, "run"))
		l := plain.again(t, o)
		for epoch := range uint64(4) {
			seen, same := make([]int, n), true
			for i := range n {
				row := l.At(epoch*n + i)
				seen[row]++
				same = same && row == plain.At(epoch*n+i)
			}
			for r, times := range seen {
				if times != 1 {
					t.Fatalf("seed %d, %+v: epoch %d has row %d %d times", seed, o, epoch, r, times)
				}
			}
			if here := l.arrangement(epoch) != nil; !here && !same {
				t.Fatalf("seed %d, %+v: epoch %d is another one", seed, o, epoch)
			}
		}
		if f := o.First; f.Scores != "" {
			checkWarmup(t, l, f)
		}
		if o.Last.Scores != "" {
			checkAnnealing(t, l, o)
		}
	})
}

func checkWarmup(t *rapid.T, l *Loader, f First) {
	scores := naiveScores(t, l, f.Scores)
	easier := func(row uint64) (n int) { // rows that are certainly easier
		for _, s := range scores {
			switch x := scores[row]; {
			case math.IsNaN(x):
				if !math.IsNaN(s) {
					n++
				}
			case f.High && s > x+1e-5 || !f.High && s < x-1e-5:
				n++
			}
		}
		return n
	}
	w := min(f.Samples, l.windows)
	for i := range w {
		x := float64(i) / float64(w)
		c := map[Pacing]float64{
			Linear: f.Start + (1-f.Start)*x, Root: math.Sqrt(f.Start*f.Start + (1-f.Start*f.Start)*x),
			Step: f.Start + (1-f.Start)*math.Floor(4*x)/4,
		}[f.Pacing]
		bound := max(c*float64(l.windows)+1, float64(i)+1)
		if n := easier(l.At(i)); float64(n) >= bound+1e-6 {
			t.Fatalf("%+v: sample %d has %d easier rows, its time admits %.2f of %d", f, i, n, bound, l.windows)
		}
	}
}

func checkAnnealing(t *rapid.T, l *Loader, o Order) {
	n := l.windows
	scores := naiveScores(t, l, o.Last.Scores)
	begin := o.Run - o.Last.Samples
	for epoch := begin / n; epoch*n < o.Run; epoch++ {
		at := epoch * n
		lo, hi := max(begin, at), min(o.Run, at+n)
		if hi-lo == n {
			continue
		}
		since := min(max(o.Last.Since, at), lo)
		if o.First.Scores != "" && epoch == 0 {
			since = max(since, min(o.First.Samples, n))
		}
		var left []float64 // scores of what was not seen, good ones large
		goodness := func(k uint64) float64 {
			s := scores[l.At(k)]
			if math.IsNaN(s) {
				return math.Inf(-1)
			}
			if !o.Last.High {
				s = -s
			}
			return s
		}
		for k := since; k < at+n; k++ {
			left = append(left, goodness(k))
		}
		slices.Sort(left)
		slices.Reverse(left)
		from := min(max(int(math.Ceil(o.Last.Best*float64(len(left)))), int(hi-lo)), len(left))
		worst := left[from-1]
		for k := lo; k < hi; k++ {
			if g := goodness(k); g < worst-1e-5 {
				t.Fatalf("%+v: sample %d has a score of %v, the best %d of the %d rows left are at least %v",
					o, k, g, from, len(left), worst)
			}
		}
	}
}

// Any number of readers that are killed anywhere and come back as any other number, in any batch size, with samples
// left out, read what one reader reads.
func TestAnyReadersReadTheSameOrder(t *testing.T) {
	d := scored(t)
	rapid.Check(t, func(t *rapid.T) {
		first := anyPacked(t, d, rapid.Uint64().Draw(t, "seed"))
		total := 2*first.windows + 7
		o := anyOrder(t, total)
		one := first.again(t, o)
		skip := SkipList(nil).Without(3, rapid.Uint64Range(3, 9).Draw(t, "skip"))
		one.Skip(skip)
		want := make([]uint64, total)
		for k := range want {
			want[k] = one.At(uint64(k))
		}
		got := make([]uint64, 0, total)
		state := one.State(0)
		for uint64(len(got)) < total {
			world, batch := rapid.Uint64Range(1, 4).Draw(t, "world"), rapid.Uint64Range(1, 9).Draw(t, "batch")
			readers := make([]*Loader, world)
			for i := range readers {
				readers[i] = first.again(t, o)
				readers[i].Skip(skip)
				if err := readers[i].Check(state); err != nil {
					t.Fatal(err)
				}
			}
			for steps := rapid.IntRange(1, 20).
				Draw(t, "steps until killed"); steps > 0 && uint64(len(got)) < total; steps-- {
				n := min(world*batch, total-state.Sample)
				rows := make([]uint64, n)
				for r, reader := range readers {
					for i := uint64(r); i < n; i += world {
						rows[i] = reader.At(state.Sample + i)
					}
				}
				got = append(got, rows...)
				raw, err := json.Marshal(readers[0].State(state.Sample + n))
				if state = (State{}); err != nil || json.Unmarshal(raw, &state) != nil || len(raw) >= 200 {
					t.Fatalf("state of %d bytes: %s, %v", len(raw), raw, err)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v: %s", o, diff)
		}
	})
}

// In a mix, each source is in the order that it has alone when the lengths are counted in its own samples; the mix
// goes on from its own state and from none of another order.
func TestMixedOrdersEachSource(t *testing.T) {
	sets := []*Dataset{scored(t), scored(t)}
	mixed := func(t *rapid.T, o Order) *Mixed {
		l, err := NewMixed(sets, Concat, 33, 5,
			func([]uint64) (Mix, error) { return Mix{{Weights: []float64{2, 1}}}, nil })
		if err == nil {
			err = l.Arrange(o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	rapid.Check(t, func(t *rapid.T) {
		o := anyOrder(t, rapid.Uint64Range(1, 500).Draw(t, "run"))
		l := mixed(t, o)
		var of [2][]uint64 // of each source: at which samples of the run it is read
		for k := range o.Run {
			s, i := l.At(k)
			if i != uint64(len(of[s])) {
				t.Fatalf("sample %d is sample %d of source %d, want %d", k, i, s, len(of[s]))
			}
			of[s] = append(of[s], k)
		}
		for s, at := range of {
			count := func(k uint64) uint64 { n, _ := slices.BinarySearch(at, k); return uint64(n) }
			own := o
			own.Run, own.First.Samples, own.Last.Since = count(o.Run), count(o.First.Samples), count(o.Last.Since)
			own.Last.Samples = own.Run - count(o.Run-o.Last.Samples)
			alone := (&Loader{d: l.loaders[s].d, context: 33, seed: l.loaders[s].seed}).again(t, own)
			for i := range own.Run {
				if got, want := l.loaders[s].At(i), alone.At(i); got != want {
					t.Fatalf("%+v: sample %d of source %d is row %d, alone %d", o, i, s, got, want)
				}
			}
		}
		at := rapid.Uint64Range(0, o.Run).Draw(t, "at")
		if err := mixed(t, o).Check(l.State(at)); err != nil {
			t.Fatalf("%+v: its own state at %d: %v", o, at, err)
		}
		if s := l.State(at); s.Order != "" && mixed(t, Order{}).Check(s) == nil {
			t.Fatalf("%+v: a mix in random order goes on from sample %d", o, at)
		}
	})
}

// What a warm-up draws first is even over what is admitted, and what comes after it is in even order: χ² over keys
// stays within five standard deviations.
func TestDrawsAreEven(t *testing.T) {
	const n, w, keys = 6, 2, 36000
	scores := []float32{5, 4, 3, 2, 1, 0}
	even := func(what string, counts map[string]float64, kinds int) {
		chi2, want := 0.0, float64(keys)/float64(kinds)
		for _, c := range counts {
			chi2 += (c - want) * (c - want) / want
		}
		chi2 += want * float64(kinds-len(counts))
		if dof := float64(kinds - 1); len(counts) > kinds || chi2 > dof+5*math.Sqrt(2*dof) {
			t.Errorf("%s: χ² = %.1f over %d of %d kinds", what, chi2, len(counts), kinds)
		}
	}
	first, rest, last := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for key := range uint64(keys) {
		rows := []uint32{0, 1, 2, 3, 4, 5}
		First{Start: 0.5, Pacing: Linear}.draw(rows, scores, mix(key), w)
		first[fmt.Sprint(rows[0])]++ // of 5, 4, 3
		order := slices.Clone(rows[w:])
		for i, r := range order { // as ranks among themselves
			below := 0
			for _, s := range rows[w:] {
				if s < r {
					below++
				}
			}
			order[i] = uint32(below)
		}
		rest[fmt.Sprint(order)]++
		Last{Best: 0.5, High: true}.hold(rows[:n], scores, mix(key+keys), 3, 2)
		last[fmt.Sprint(rows[3:5])]++ // two of 0, 1, 2 in any order
	}
	even("the first sample of a warm-up", first, 3)
	even("orders of what is left", rest, 24)
	even("the samples of an annealing", last, 6)
}

// A run in random order can go on with an annealing that holds back from there on; nothing else is taken for what it
// is not.
func TestOrderOfAStateIsChecked(t *testing.T) {
	d := scored(t)
	with := func(o Order) *Loader {
		l, err := d.TrainLoader(8, 1)
		if err == nil {
			err = l.Arrange(o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	n := with(Order{}).windows
	warm := Order{Run: n, First: First{Scores: "a", Samples: n / 5, Start: 0.1, Pacing: Root}}
	late := Order{Run: n, Last: Last{Scores: "b", High: true, Samples: n / 5, Best: 0.3, Since: n / 2}}
	both := Order{Run: n, First: warm.First, Last: late.Last}
	for name, c := range map[string]struct {
		was, now Order
		sample   uint64
		ok       bool
	}{
		"the same":                         {both, both, n - 1, true},
		"scores":                           {warm, Order{Run: n, First: First{"b", false, n / 5, 0.1, Root}}, 9, false},
		"a longer run, the same warm-up":   {warm, Order{Run: 2 * n, First: warm.First}, 9, true},
		"a longer run, annealed":           {late, Order{Run: 2 * n, Last: late.Last}, n / 2, true},
		"a longer run, annealed, too late": {late, Order{Run: 2 * n, Last: late.Last}, n - 1, false},
		"none before":                      {Order{}, warm, 9, false}, "none now": {warm, Order{}, 9, false},
		"annealed from here": {Order{}, late, n / 2, true}, "annealed from before": {Order{}, late, n/2 + 1, false},
		"annealed otherwise, later": {late, Order{Run: 2 * n, Last: Last{"a", true, n / 5, 0.3, n / 2}}, n / 2, true},
		"not annealed":              {late, Order{}, n / 2, true}, "no longer": {late, Order{}, n/2 + 1, false},
	} {
		l := with(c.now)
		if err := l.Check(with(c.was).State(c.sample)); (err == nil) != c.ok ||
			err != nil && !strings.Contains(err.Error(), "data.order") {
			t.Errorf("%s: %v, want accepted %v", name, err, c.ok)
		}
		if was := with(c.was); c.ok {
			for k := range c.sample {
				if l.At(k) != was.At(k) {
					t.Errorf("%s: accepted, but sample %d is row %d and was %d", name, k, l.At(k), was.At(k))
				}
			}
		}
	}
	packed, err := d.PackedLoader(BestFit, 8, math.MaxUint64)
	if err == nil {
		err = packed.Arrange(warm)
	}
	if err != nil {
		t.Fatal(err)
	}
	largest := packed.State(1<<62 - 1)
	largest.Context = 1 << 20
	if raw, _ := json.Marshal(largest); len(raw) >= 200 || largest.Order == "" {
		t.Errorf("a state of %d bytes: %s", len(raw), raw)
	}
	for name, o := range map[string]Order{
		"too long":  {Run: 9, First: First{Scores: "a", Samples: 10}},
		"overlap":   {Run: 9, First: First{Scores: "a", Samples: 5}, Last: Last{Scores: "a", Samples: 5}},
		"since":     {Run: 9, Last: Last{Scores: "a", Samples: 5, Since: 5}},
		"no scores": {Run: 9, Last: Last{Scores: "c", Samples: 5}},
	} {
		if l, _ := d.TrainLoader(8, 1); l.Arrange(o) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkArrange(b *testing.B) {
	scores := make([]float32, 1<<20)
	for i := range scores {
		scores[i] = float32(mix(uint64(i)) >> 40)
	}
	rows := make([]uint32, len(scores))
	for b.Loop() {
		for i := range rows {
			rows[i] = uint32(i)
		}
		First{Start: 0.1, Pacing: Root}.draw(rows, scores, 1, 1<<17)
		Last{Best: 0.2, High: true}.hold(rows[1<<17:], scores, 2, 1<<19, 1<<17)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}
