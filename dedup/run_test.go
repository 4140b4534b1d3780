package dedup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/corpus"
	"anneal/internal/filetest"
)

// texts makes n documents of random words; every third is an edited, and every tenth an exact copy of an earlier one.
func texts(n int, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	word := func() string { return fmt.Sprintf("w%c%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26)) }
	var all [][]byte
	for i := range n {
		if i > 10 && i%10 == 0 {
			all = append(all, slices.Clone(all[r.IntN(i)]))
			continue
		}
		var words []string
		if i > 10 && i%3 == 0 {
			words = strings.SplitAfter(string(all[r.IntN(i)]), " ")
			for range 1 + r.IntN(4) {
				words[r.IntN(len(words))] = word() + " "
			}
		} else {
			for j := range 60 + r.IntN(200) {
				words = append(words, word()+" ")
				if j%12 == 11 {
					words[j] = strings.TrimSpace(words[j]) + "\n"
				}
				if j%36 == 35 {
					words[j] += "\n"
				}
			}
		}
		all = append(all, []byte(strings.Join(words, "")))
	}
	return all
}

func documents(all [][]byte) func(bool) iter.Seq2[corpus.Document, error] {
	return func(bool) iter.Seq2[corpus.Document, error] {
		return func(yield func(corpus.Document, error) bool) {
			for i, t := range all {
				if !yield(corpus.Document{Source: "made", Index: i, Text: slices.Clone(t)}, nil) {
					return
				}
			}
		}
	}
}

// files is the content of a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := filetest.Contents(t, dir, "")
	if len(m) != 3 {
		t.Fatalf("%d files", len(m))
	}
	return m
}

// One, two and seven workers, and memory for all keys or for a small part, write the same bytes.
func TestRunDependsOnInputAlone(t *testing.T) {
	all := texts(4000, 3)
	var want map[string]string
	for _, c := range []struct {
		threads int
		memory  int64
	}{{1, 1 << 30}, {2, 1}, {7, 1 << 20}, {7, 1 << 30}} {
		out := filepath.Join(t.TempDir(), "out")
		rep, err := Run(context.Background(), Options{
			Near: &MinHash{}, Verify: 0.8, NGrams: &Bloom{Memory: 1 << 20}, Units: []Unit{Document, Paragraph, Line},
			Threads: c.threads, Memory: c.memory, Out: out,
		}, documents(all))
		if err != nil {
			t.Fatal(err)
		}
		if rep.Exact < 300 || rep.Near < 500 || rep.Units["line"] == 0 || rep.NGrams == 0 || rep.Confirmed == 0 ||
			rep.Confirmed >= rep.Candidates {
			t.Fatalf("planted copies were not found: %+v", rep)
		}
		if spilled := rep.Spilled > 0; spilled != (c.memory < 1<<30) {
			t.Errorf("%d bytes of memory: %d spilled", c.memory, rep.Spilled)
		}
		got := files(t, out)
		if want == nil {
			want = got
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s differs with %d threads and %d bytes of memory", name, c.threads, c.memory)
			}
		}
	}
}

// The first of what is alike stays as it was, and nothing that is unlike goes.
func TestRunKeepsTheFirst(t *testing.T) {
	long := strings.Repeat("the quick brown fox jumps over the lazy dog and runs away ", 3)
	all := [][]byte{
		[]byte("}\n\nA paragraph that is here twice.\n\n" +
			"alone in a long row of other words that nobody else has ever put behind one another\n"),
		[]byte(long + "one two three four five six seven"),
		[]byte("something else\n"),
		[]byte("  something   else"),
		[]byte(long + "one two three four five six eight"),
		[]byte("}\n\na paragraph THAT is here twice!\n\n" +
			"not alone, but before different company than the paragraph above had, as one can see\n"),
		[]byte("A paragraph, that is here twice"),
	}
	out := filepath.Join(t.TempDir(), "out")
	rep, err := Run(context.Background(),
		Options{Near: &MinHash{}, Units: []Unit{Document, Paragraph}, MinWords: 2, Out: out}, documents(all))
	if err != nil {
		t.Fatal(err)
	}
	r, err := corpus.Open([]string{filepath.Join(out, "docs")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for d, err := range r.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(d.Text))
	}
	want := []string{
		string(all[0]), string(all[1]), string(all[2]),
		"}\n\nnot alone, but before different company than the paragraph above had, as one can see\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q: %+v", got, want, rep)
	}
	if rep.Exact != 1 || rep.Near != 1 || rep.Emptied != 1 || rep.Units["paragraph"] != 2 || rep.Clusters != 2 {
		t.Errorf("report %+v", rep)
	}
	if _, err := Run(context.Background(), Options{Out: out}, documents(all)); err == nil {
		t.Error("wrote over a directory that holds files")
	}
}

// A run that is stopped says so, and leaves nothing behind.
func TestStoppedRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	all := texts(50, 1)
	_, err := Run(ctx, Options{Near: &MinHash{}, Out: filepath.Join(dir, "out")},
		func(bool) iter.Seq2[corpus.Document, error] {
			cancel(errors.New("a signal"))
			return documents(all)(false)
		})
	left, _ := os.ReadDir(dir)
	if !errors.Is(err, context.Canceled) || len(left) > 0 {
		t.Errorf("%v, and %d files left", err, len(left))
	}
}

// A text that changes between two readings is noticed.
func TestRunNoticesChangedInput(t *testing.T) {
	all := texts(50, 1)
	_, err := Run(context.Background(), Options{Near: &MinHash{}, Out: filepath.Join(t.TempDir(), "out")},
		func(bool) iter.Seq2[corpus.Document, error] {
			all[7][3] ^= 1
			return documents(all)(false)
		})
	if err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("error %v", err)
	}
}

// A chain a quarter of a million long is one cluster, and no recursion runs out of stack; the order of the pairs does
// not matter.
func TestLongChainIsOneCluster(t *testing.T) {
	const n = 1 << 18
	for _, down := range []bool{false, true} {
		c, err := NewClusters(func(yield func(Pair, error) bool) {
			for i := range uint64(n) {
				p := Pair{i, i + 1}
				if down {
					p = Pair{n - 1 - i, n - i}
				}
				if !yield(p, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if first, size := c.Of(n); first != 0 || size != n+1 {
			t.Errorf("the last of a chain of %d is under %d, of %d", n+1, first, size)
		}
	}
}

// MinWords spares short lines, and short lines only: it does not switch deduplication off.
func TestMinWordsSparesShortLinesOnly(t *testing.T) {
	e := NewExact(Line, 3, 1<<20, t.TempDir())
	defer e.Close()
	h := e.NewHasher()
	for d := range uint64(2) {
		if err := h.Add(d, []byte("a long line of words\nshort line\n}\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	repeats, err := e.Repeats()
	if err != nil {
		t.Fatal(err)
	}
	var got []Repeat
	for r, err := range repeats {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if want := []Repeat{{Document: 1, Ordinal: 0, First: 0}}; !slices.Equal(got, want) {
		t.Errorf("repeats %v, want %v", got, want)
	}
}

// Keys of twelve times the memory give the pairs that they give in memory, and hold no more than they may.
func TestTenTimesTheMemory(t *testing.T) {
	const n, budget = 50_000, 14 * 64 << 10
	var want []Pair
	for _, memory := range []int64{1 << 30, budget} {
		near, err := NewNear(MinHash{}, memory, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		keys := make([]uint64, 14)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for d := range uint64(n) {
			for band := range keys {
				keys[band] = fold64((d*17+uint64(band)*d)%(n/2+uint64(band)*1000)+1, k1) // about two documents a bucket
			}
			if err := near.Add(d, keys); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if memory == budget && (held > budget+64<<10 || near.Spilled() < 10*budget) {
			t.Errorf("%d bytes held of a budget of %d, %d spilled", held, budget, near.Spilled())
		}
		pairs := NewPairs(memory, t.TempDir())
		if err := near.Link(pairs, 2); err != nil {
			t.Fatal(err)
		}
		var got []Pair
		for p, err := range pairs.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		if want == nil {
			want = got
		}
		if len(got) < n || !slices.Equal(got, want) {
			t.Errorf("%d pairs with %d bytes of memory, %d in memory", len(got), memory, len(want))
		}
		near.Close()
		pairs.Close()
	}
}

// Confirm keeps the pairs whose sets of n-grams are as alike as is asked, by a count of maps.
func TestVerifierComputesJaccard(t *testing.T) {
	all := texts(200, 5)
	s, err := MinHash{}.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	pairs := NewPairs(1<<20, t.TempDir())
	defer pairs.Close()
	for a := range uint64(len(all)) {
		for b := a + 1; b < uint64(len(all)); b += 3 {
			pairs.Add(b, a)
		}
	}
	v, err := NewVerifier(pairs.All(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	sets := make([]map[uint32]bool, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		if err := v.Add(uint64(i), all[i], s); err != nil {
			t.Fatal(err)
		}
		sets[i] = map[uint32]bool{}
		for _, g := range s.Grams(all[i]) {
			sets[i][g] = true
		}
	}
	got := map[Pair]bool{}
	for p, err := range v.Confirm(pairs.All(), 0.8) {
		if err != nil {
			t.Fatal(err)
		}
		got[p] = true
	}
	n := 0
	for p := range pairs.All() {
		both := 0
		for g := range sets[p.A] {
			if sets[p.B][g] {
				both++
			}
		}
		want := float64(both) >= 0.8*float64(len(sets[p.A])+len(sets[p.B])-both)
		if want {
			n++
		}
		if got[p] != want {
			t.Errorf("%v: %d n-grams in both, of %d and %d; confirmed %v",
				p, both, len(sets[p.A]), len(sets[p.B]), got[p])
		}
	}
	if n < 10 {
		t.Errorf("only %d pairs are alike: nothing is shown", n)
	}
}

// A similarity in percent would keep every near-duplicate without a word.
func TestOptionsThatKeepEverythingAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"unit 3 does not exist":                             {Units: []Unit{Line + 1}},
		"verification needs a similarity of 0 to 1, not 80": {Near: &MinHash{}, Verify: 80},
		"not NaN":                 {Near: &MinHash{}, Verify: math.NaN()},
		"share of 0 to 1, not 80": {NGrams: &Bloom{Threshold: 80}},
		"share of 0 to 1, not -1": {NGrams: &Bloom{Threshold: -1}},
		"filter of -2 words":      {NGrams: &Bloom{Words: -2}},
		"in -3 bytes":             {NGrams: &Bloom{Memory: -3}},
	} {
		o.Out = filepath.Join(t.TempDir(), "out")
		_, err := Run(t.Context(), o, documents(texts(20, 1)))
		_, _, err2 := Decide(t.Context(), o, t.TempDir(), documents(texts(20, 1)))
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	_, noDocuments := Run(t.Context(), Options{Out: filepath.Join(t.TempDir(), "out")}, nil)
	_, _, none := Decide(t.Context(), Options{}, t.TempDir(), nil)
	_, noOut := Run(t.Context(), Options{}, documents(texts(2, 1)))
	for _, c := range []struct {
		err  error
		want string
	}{{noDocuments, "no documents"}, {none, "no documents"}, {noOut, "Options.Out"}} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// A document whose line no command would read again counts as lost.
func TestDocumentsTooLongToWriteAreLost(t *testing.T) {
	documents := func(bool) iter.Seq2[corpus.Document, error] {
		return func(yield func(corpus.Document, error) bool) {
			for i, n := range []int{3, corpus.LongestLine - 20, 5} {
				if !yield(corpus.Document{Text: bytes.Repeat([]byte{'a' + byte(i)}, n), Source: "x", Index: i}, nil) {
					return
				}
			}
		}
	}
	o := Options{Units: []Unit{Document}, Out: t.TempDir(), Input: func() corpus.Report {
		return corpus.Report{Documents: 3, Bytes: corpus.LongestLine}
	}}
	rep, err := Run(context.Background(), o, documents)
	if err != nil || rep.Kept != 2 || rep.Input.Lost == nil || rep.Input.Lost.Documents != 1 ||
		rep.Input.Documents != 2 || rep.Input.Bytes != 20 {
		t.Errorf("kept %d of 3 documents, %+v; %v", rep.Kept, rep.Input, err)
	}
}
