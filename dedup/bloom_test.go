package dedup

import (
	"math"
	"slices"
	"testing"
)

func filter(tb testing.TB, b Bloom, threads int) *Filter {
	f, err := b.NewFilter(threads)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

// The rate of false positives, at any number of lines, is that of the formula: within 3σ, and lines are used evenly.
func TestBloomFalsePositives(t *testing.T) {
	const probes = 200_000
	for _, lines := range []int64{2048, 2047, 1500} { // a power of two, and others: the index must not be a mask
		for _, load := range []int64{16, 26, 43} {
			f := filter(t, Bloom{Memory: 64 * lines}, 1)
			list := make([]uint64, load*lines)
			for i := range list {
				list[i] = fold64(uint64(i+1)*k1, k2)
			}
			f.pass(0, []grams{{list}})
			if f.part[0].seen[0] != 0 {
				t.Errorf("%d lines: %d n-grams of a document were repetitions of itself", lines, f.part[0].seen[0])
			}
			hits := 0
			for i := range probes {
				x := fold64(uint64(i+1)*k2, k1)
				if f.lines[f.at(x)].has(x) {
					hits++
				}
			}
			used := 0
			for _, l := range f.lines {
				if l != (line{}) {
					used++
				}
			}
			got, want := float64(hits)/probes, blockedRate(float64(load))
			sigma := math.Sqrt(want * (1 - want) / probes)
			t.Logf("%d lines, %.1f bits an n-gram: measured %.6f, formula %.6f, σ %.6f",
				lines, 512/float64(load), got, want, sigma)
			if math.Abs(got-want) > 3*sigma+0.05*want { // the filled filter is itself one draw
				t.Errorf("%d lines, load %d: %.6f, formula %.6f ± %.6f", lines, load, got, want, 3*sigma)
			}
			if used != int(lines) {
				t.Errorf("%d lines of %d are used", used, lines)
			}
		}
	}
}

// Shares are those of an exact set, for any number of workers and any cut into batches.
func TestBloomSharesEqualASet(t *testing.T) {
	all := texts(600, 9)
	all = append(all, nil, []byte("short"), []byte("SHORT!"), slices.Concat(all[0], all[0]))
	var w Words
	seen := map[uint64]bool{}
	var want []float64
	for _, d := range all {
		list := slices.Clone(NGrams(w.Hashes(d), 13))
		n := 0
		for _, x := range list {
			if seen[x] {
				n++
			}
		}
		for _, x := range list {
			seen[x] = true
		}
		want = append(want, float64(n)/float64(max(len(list), 1)))
	}
	for _, c := range [][2]int{{1, 1000}, {2, 7}, {7, 64}} {
		f := filter(t, Bloom{Memory: 32 << 20}, c[0])
		var got []float64
		for batch := range slices.Chunk(all, c[1]) {
			got = f.Shares(got, batch)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d workers, batches of %d: shares differ from those of a set", c[0], c[1])
		}
		if rate := f.FalsePositives(); rate > 1e-6 {
			t.Errorf("rate %g", rate)
		}
		if f.n != int64(len(seen)) {
			t.Errorf("%d n-grams remembered, %d in the set", f.n, len(seen))
		}
	}
}

func BenchmarkBloom(b *testing.B) {
	docs, size := library(b, 8<<20)
	f := filter(b, Bloom{Memory: 128 << 20}, 1)
	b.SetBytes(size)
	var shares []float64
	for b.Loop() {
		shares = f.Shares(shares[:0], docs)
	}
}
