package tokenizer

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// manyWords makes documents of n distinct words of a few syllables, by frequency like a language's: word i occurs
// about n/i times, the last ones once. Some are long, some are short.
func manyWords(n int) []string {
	rng := rand.New(rand.NewPCG(11, 12))
	syllables := []string{"ka", "ro", "mi", "ten", "sol", "ver", "da", "lum", "é", "ing", "er", "st"}
	var docs []string
	var doc strings.Builder
	write := func(i int) {
		for k := i; ; k /= len(syllables) {
			doc.WriteString(syllables[k%len(syllables)])
			if k < len(syllables) {
				break
			}
		}
		if i%50 == 0 {
			doc.WriteString(strings.Repeat("ly", 6))
		}
		doc.WriteByte(' ')
		if doc.Len() > 1<<15 {
			docs = append(docs, doc.String())
			doc.Reset()
		}
	}
	for i := range n {
		write(i)
		write(int(float64(n) * rng.Float64() * rng.Float64() * rng.Float64()))
	}
	return append(docs, doc.String())
}

func written(t testing.TB, tok *Tokenizer) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := tok.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What goes to disk on the way does not show in the outcome, and nothing is left there.
func TestTrainingDoesNotDependOnMemory(t *testing.T) {
	docs := manyWords(60_000)
	want := written(t, mustTrain(t, TrainOptions{VocabSize: 1500}, docs...))
	for _, threads := range []int{1, 2, 7} {
		dir := t.TempDir()
		var r TrainReport
		got := mustTrain(t, TrainOptions{VocabSize: 1500, Threads: threads, Memory: 24 << 20, TempDir: dir, Report: &r},
			docs...)
		if r.Spilled == 0 || r.Dropped != (Dropped{}) {
			t.Fatalf("%d threads: %+v: this test is about what spills and drops nothing", threads, r)
		}
		if written(t, got) != want {
			t.Errorf("%d threads: another tokenizer.json than with all in memory", threads)
		}
		if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
			t.Errorf("%d threads: left %v behind (%v)", threads, left, err)
		}
	}
}

// Few words need no file, whatever the limit.
func TestFewWordsNeedNoDirectoryForTemporaryFiles(t *testing.T) {
	docs := manyWords(500)
	want := written(t, mustTrain(t, TrainOptions{VocabSize: 400}, docs...))
	var r TrainReport
	o := TrainOptions{VocabSize: 400, Threads: 2, Memory: 24 << 20, TempDir: "/none", Report: &r}
	got := mustTrain(t, o, docs...)
	if written(t, got) != want || r.Spilled != 0 {
		t.Errorf("another tokenizer than with all in memory, or %d bytes spilled", r.Spilled)
	}
}

// With too little memory the rarest pretokens go: the vocabulary is that of the text without them, and the report says
// which they were.
func TestTrainDropsTheRarest(t *testing.T) {
	docs := manyWords(120_000)
	var want *Tokenizer
	var first TrainReport
	for _, threads := range []int{1, 2, 7} {
		var r TrainReport
		opt := TrainOptions{VocabSize: 1000, Threads: threads, Memory: 8 << 20, TempDir: t.TempDir(), Report: &r}
		got := mustTrain(t, opt, docs...)
		if want == nil {
			counts := map[string]int{}
			for _, d := range docs {
				for _, piece := range split(patterns[llama3].new(), []byte(d)) {
					counts[piece]++
				}
			}
			drop := Dropped{Below: r.Dropped.Below}
			var kept []string
			for _, piece := range slices.Sorted(maps.Keys(counts)) {
				if n := counts[piece]; len(piece) > 1 && int64(n) < drop.Below {
					drop.Words++
					drop.Occurrences += int64(n)
					drop.Bytes += int64(n * len(piece))
				} else {
					kept = append(kept, slices.Repeat([]string{piece}, n)...)
				}
			}
			if drop != r.Dropped || drop.Below < 2 || drop.Words >= r.Words {
				t.Fatalf("reported %+v, counted %+v", r, drop)
			}
			want, first = mustTrain(t, TrainOptions{VocabSize: 1000}, kept...), r
		}
		if got.Hash() != want.Hash() {
			t.Errorf("%d threads: hash %s; without the words that %+v dropped it is %s",
				threads, got.Hash(), r.Dropped, want.Hash())
		}
		if r.Dropped != first.Dropped {
			t.Errorf("%d threads: dropped %+v, with one thread %+v", threads, r.Dropped, first.Dropped)
		}
		if r.Peak > opt.Memory {
			t.Errorf("%d threads: accounted for %d bytes of %d", threads, r.Peak, opt.Memory)
		}
	}
	_, err := Train(context.Background(),
		TrainOptions{VocabSize: 1000, Memory: 8 << 20, TempDir: t.TempDir(), KeepAll: true}, each(docs...))
	if err == nil || !strings.Contains(err.Error(), "drop pretokens that occur fewer than") {
		t.Errorf("nothing may be left out: error %v", err)
	}
}

// What is accounted for is what is held: the heap, garbage collected, stays within the memory given, for words of a
// language and for noise, whose pairs are many.
func TestTrainingStaysWithinItsMemory(t *testing.T) {
	noise := make([]byte, 3<<20)
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyz      "[rng.IntN(32)]
	}
	var noisy []string
	for part := range slices.Chunk(noise, 64<<10) {
		noisy = append(noisy, string(part))
	}
	for name, docs := range map[string][]string{"words": manyWords(200_000), "noise": noisy} {
		const memory = 16 << 20
		var r TrainReport
		var base, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&base)
		most := uint64(0)
		seen := map[string]int{}
		opt := TrainOptions{VocabSize: 6000, Threads: 2, Memory: memory, TempDir: t.TempDir(), Report: &r,
			Progress: func(p Progress) {
				if seen[p.Phase]++; seen[p.Phase] > 8 {
					return
				}
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc-min(base.HeapAlloc, now.HeapAlloc))
			}}
		mustTrain(t, opt, docs...)
		const texts = 2 * 4 << 20
		if most > memory+texts || r.Peak > memory || r.Spilled == 0 {
			t.Errorf("%s: a heap of %d bytes, %d accounted for, with %d given and texts of %d: %+v",
				name, most, r.Peak, memory, texts, r)
		}
		t.Logf("%s: heap %.1f MiB, accounted %.1f MiB: %+v", name, float64(most)/(1<<20), float64(r.Peak)/(1<<20), r)
	}
}

// Counts beyond 2^31 come through a file whole, and so do bytes that could be taken for ends.
func TestRunsKeepCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := &runFile{}
		defer runs.Close()
		want := map[string]int64{}
		for range rapid.IntRange(0, 9).Draw(t, "runs") {
			c := newWordCounts()
			for range rapid.IntRange(0, 12).Draw(t, "words") {
				piece := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\x00\xff")), 1, 24).Draw(t, "piece")
				n := rapid.Int64Range(1, 1<<55).Draw(t, "count")
				want[string(piece)] += n
				if len(piece) <= shortWord {
					c.addWord(packWord(piece, 0, len(piece)), n)
				} else {
					c.addLong(piece, n)
				}
			}
			if err := runs.add(c); err != nil {
				t.Fatal(err)
			}
		}
		merged, again, last := map[string]int64{}, map[string]int64{}, []byte(nil)
		see := func(into map[string]int64) func([]byte, int64) error {
			last = nil
			return func(piece []byte, n int64) error {
				if last != nil && bytes.Compare(last, piece) >= 0 {
					t.Fatalf("%q after %q", piece, last)
				}
				last = append(last[:0], piece...)
				into[string(piece)] = n
				return nil
			}
		}
		if err := runs.merge(2*minRunBuffer, see(merged)); err != nil { // two at a time
			t.Fatal(err)
		}
		if d := cmp.Diff(want, merged); d != "" {
			t.Fatalf("merging (- counted, + merged):\n%s", d)
		}
		if err := runs.read(runs.runs, minRunBuffer, see(again)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, again); d != "" {
			t.Fatalf("reading the merged run again:\n%s", d)
		}
	})
}

// A disk that fails is an error that says what to do, not a smaller vocabulary, and it comes at once: not after the
// rest of the text.
func TestTrainReportsAFailingDisk(t *testing.T) {
	opt := TrainOptions{VocabSize: 500, Memory: 4 << 20, TempDir: t.TempDir() + "/absent"}
	read, words := 0, manyWords(200_000)
	docs := func(yield func([]byte, error) bool) {
		for range 50 {
			for _, d := range words {
				if read++; !yield([]byte(d), nil) {
					return
				}
			}
		}
	}
	if _, err := Train(context.Background(), opt, docs); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("error %v", err)
	}
	if read >= 50*len(words) {
		t.Errorf("all of %d documents were read first", read)
	}
}
