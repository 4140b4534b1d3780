package dataset

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"anneal/internal/filetest"
)

func TestPermutationIsABijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 5000).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch"))
		seen := make([]bool, n)
		for i := range n {
			v := p.at(i)
			if v >= n || seen[v] {
				t.Fatalf("n = %d: position %d has value %d, out of range or for the second time", n, i, v)
			}
			seen[v] = true
		}
	})
}

// Over many keys, each value is as often at each position: χ² with (n−1)² degrees of freedom stays within five
// standard deviations. So do the six orders of three values.
func TestPermutationIsUniform(t *testing.T) {
	for _, n := range []uint64{2, 3, 7, 16, 33} {
		const keys = 20000
		count := make([]float64, n*n)
		for k := range uint64(keys) {
			p := newPermutation(n, k/100, k%100)
			for i := range n {
				count[i*n+p.at(i)]++
			}
		}
		chi2, want := 0.0, float64(keys)/float64(n)
		for _, c := range count {
			chi2 += (c - want) * (c - want) / want
		}
		dof := float64((n - 1) * (n - 1))
		if chi2 > dof+5*math.Sqrt(2*dof)+10 {
			t.Errorf("n = %d: χ² = %.1f for %.0f degrees of freedom", n, chi2, dof)
		}
	}
	orders := map[[3]uint64]int{}
	for k := range uint64(60000) {
		p := newPermutation(3, 1, k)
		orders[[3]uint64{p.at(0), p.at(1), p.at(2)}]++
	}
	for o, c := range orders {
		if c < 9500 || c > 10500 {
			t.Errorf("order %v came %d times in 60000, want about 10000", o, c)
		}
	}
}

// trainLoader returns a loader over about tokens random tokens in several shards, and the stream they form.
func trainLoader(t testing.TB, docs, max, context int, seed uint64) (*Loader, []uint32) {
	t.Helper()
	d := build(t, randomDocs(seed, docs, max), BuildOptions{ShardTokens: 700})
	l, err := d.TrainLoader(context, seed)
	if err != nil {
		t.Fatal(err)
	}
	return l, d.train.all(t)
}

// Each row is a window of the stream, and each epoch holds each window once.
func TestEpochHoldsEachWindowOnce(t *testing.T) {
	for _, context := range []int{1, 7, 64, 1000} {
		l, stream := trainLoader(t, 60, 100, context, 9)
		if want := uint64(len(stream)-1) / uint64(context); l.Windows() != want {
			t.Fatalf("%d tokens, context %d: %d windows, want %d", len(stream), context, l.Windows(), want)
		}
		var b Batch
		for epoch := range uint64(3) {
			seen := map[uint64]bool{}
			for i := range l.Windows() {
				k := epoch*l.Windows() + i
				w := l.At(k)
				seen[w] = true
				if err := l.Batch(&b, k, 1); err != nil {
					t.Fatal(err)
				}
				window := stream[int(w)*context:][:context+1]
				for j := range context {
					if b.Tokens[j] != window[j] || b.Targets[j] != int32(window[j+1]) {
						t.Fatalf("context %d, sample %d, position %d: %d → %d, the stream has %d → %d",
							context, k, j, b.Tokens[j], b.Targets[j], window[j], window[j+1])
					}
				}
			}
			if uint64(len(seen)) != l.Windows() {
				t.Errorf("context %d, epoch %d: %d of %d windows", context, epoch, len(seen), l.Windows())
			}
		}
	}
}

// Reading from any sample on, in any batch size, with a new loader, gives what an uninterrupted reading gives.
func TestResumeEqualsUninterrupted(t *testing.T) {
	l, _ := trainLoader(t, 60, 100, 16, 3)
	var whole Batch
	total := int(2*l.Windows() + 5)
	if err := l.Batch(&whole, 0, total); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, total-1).Draw(t, "at")
		rows := rapid.IntRange(1, total-at).Draw(t, "rows")
		again, err := l.d.TrainLoader(16, 3)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(l.State(uint64(at)))
		var s State
		if err != nil || json.Unmarshal(raw, &s) != nil || again.Check(s) != nil {
			t.Fatalf("state %s does not come back", raw)
		}
		var b Batch
		if err := again.Batch(&b, s.Sample, rows); err != nil {
			t.Fatal(err)
		}
		want := Batch{
			rows, 16, whole.Tokens[at*16:][:rows*16], whole.Targets[at*16:][:rows*16], whole.DocStart[at*16:][:rows*16],
		}
		if d := cmp.Diff(want, b); d != "" {
			t.Fatal(d)
		}
	})
}

// DocStart against its definition: the last EOT at or before each position, else 0.
func TestDocStartFollowsEOT(t *testing.T) {
	l, _ := trainLoader(t, 200, 12, 32, 5)
	var b Batch
	if err := l.Batch(&b, 0, int(l.Windows())); err != nil {
		t.Fatal(err)
	}
	several := false
	for r := range b.Rows {
		row, starts := b.Tokens[r*32:][:32], b.DocStart[r*32:][:32]
		for i := range row {
			want := max(0, lastIndex(row[:i+1], byteTokenizer.EOT))
			if int(starts[i]) != want {
				t.Fatalf("row %v: token %d starts at %d, want %d", row, i, starts[i], want)
			}
			several = several || want > 0
		}
	}
	if !several || b.Valid() != b.Rows*32 {
		t.Errorf("%d of %d targets count", b.Valid(), b.Rows*32)
	}
}

func lastIndex(s []uint32, v uint32) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == v {
			return i
		}
	}
	return -1
}

// Validation in batches of any size holds every token but the first as a target once, in order, and the bytes of the
// targets are those of the text.
func TestValidationCountsEachTokenOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := randomDocs(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(2, 40).Draw(rt, "docs"), 60)
		d := build(t, docs, BuildOptions{ValFraction: 0.5, ShardTokens: 200})
		context := rapid.IntRange(1, 300).Draw(rt, "context")
		rows := rapid.IntRange(1, 9).Draw(rt, "rows")
		l, err := d.ValLoader(context)
		if err != nil {
			rt.Fatal(err)
		}
		byteLen := make([]int32, 257)
		for i := range 256 {
			byteLen[i] = 1
		}
		var b Batch
		var targets []uint32
		bytes, valid := uint64(0), 0
		for k := uint64(0); k < l.Windows(); k += uint64(rows) {
			if err := l.Batch(&b, k, rows); err != nil {
				rt.Fatal(err)
			}
			for _, target := range b.Targets {
				if target != Ignore {
					targets = append(targets, uint32(target))
				}
			}
			bytes += b.TextBytes(byteLen)
			valid += b.Valid()
		}
		if diff := cmp.Diff(d.val.all(t)[1:], targets); diff != "" || valid != len(targets) {
			rt.Fatalf("context %d, %d rows: %s", context, rows, diff)
		}
		if bytes != d.Manifest.Val.TextBytes {
			rt.Fatalf("targets stand for %d bytes of text, the split has %d", bytes, d.Manifest.Val.TextBytes)
		}
	})
	if got := BitsPerByte(8*math.Ln2*1000, 1000); math.Abs(got-8) > 1e-12 {
		t.Errorf("1000 bytes at 8 bits each: %v bits per byte", got)
	}
}

func TestTooLittleDataIsAnError(t *testing.T) {
	d := build(t, []string{"short"}, BuildOptions{ValFraction: 0.1})
	if _, err := d.TrainLoader(6, 0); err == nil || !strings.Contains(err.Error(), "context of at most 5") ||
		!strings.Contains(err.Error(), d.Dir) {
		t.Errorf("6 tokens, context 6: %v", err)
	}
	if l, err := d.TrainLoader(5, 0); err != nil || l.Windows() != 1 {
		t.Errorf("6 tokens, context 5: %v", err)
	}
	if _, err := d.TrainLoader(0, 0); err == nil {
		t.Error("context 0 is accepted")
	}
	if _, err := d.ValLoader(5); !errors.Is(err, ErrNoValidation) || !strings.Contains(err.Error(), d.Dir) {
		t.Errorf("no validation split: %v", err)
	}
}

func TestStateIsRefusedElsewhere(t *testing.T) {
	l, _ := trainLoader(t, 20, 100, 8, 1)
	s := l.State(math.MaxUint64)
	s.Seed = math.MaxUint64
	if raw, _ := json.Marshal(s); len(raw) >= 200 {
		t.Errorf("state of %d bytes: %s", len(raw), raw)
	}
	other, _ := trainLoader(t, 21, 100, 8, 1)
	for name, s := range map[string]State{
		"other data": other.State(1), "other context": {Data: l.d.fingerprint, Context: 9, Seed: 1},
		"other seed": {Data: l.d.fingerprint, Context: 8, Seed: 2},
	} {
		if l.Check(s) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := l.Check(l.State(5)); err != nil {
		t.Error(err)
	}
}

func TestBatchAllocatesNothingAfterTheFirst(t *testing.T) {
	l, _ := trainLoader(t, 60, 100, 64, 1)
	packed, err := l.d.PackedLoader(BestFit, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Source{"loader": l, "packed": packed, "random": NewRandom(1000, 64, 1)} {
		var b Batch
		k := uint64(0)
		step := func() {
			if err := s.Batch(&b, k, 8); err != nil {
				t.Fatal(err)
			}
			k += 8
		}
		if n := filetest.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations a batch", name, n)
		}
	}
}

func TestRandomSourceIsAFunctionOfTheSample(t *testing.T) {
	r := NewRandom(100, 8, 7)
	var a, b Batch
	r.Batch(&a, 10, 4)
	r.Batch(&b, 12, 1)
	if !slices.Equal(a.Tokens[16:24], b.Tokens) || !slices.Equal(a.Targets[16:24], b.Targets) ||
		slices.Equal(a.Tokens[:8], a.Tokens[8:16]) {
		t.Errorf("sample 12 is %v alone and %v in a batch", b.Tokens, a.Tokens[16:24])
	}
	for i := range 7 {
		if b.Targets[i] != int32(b.Tokens[i+1]) {
			t.Errorf("target %d is %d, the next token %d", i, b.Targets[i], b.Tokens[i+1])
		}
	}
	var counts [100]int
	r.Batch(&a, 0, 1000)
	for _, id := range a.Tokens {
		counts[id]++
	}
	if lo, hi := slices.Min(counts[:]), slices.Max(counts[:]); lo < 40 || hi > 130 {
		t.Errorf("8000 tokens over 100 ids: between %d and %d of each", lo, hi)
	}
}

func BenchmarkBatch(b *testing.B) {
	l, _ := trainLoader(b, 2000, 4000, 1024, 1)
	var batch Batch
	r := rand.New(rand.NewPCG(1, 1))
	b.SetBytes(8 * 1024 * 2)
	for b.Loop() {
		if err := l.Batch(&batch, r.Uint64N(1<<40), 8); err != nil {
			b.Fatal(err)
		}
	}
}

// What scores documents reads every token but the first as a target exactly once, and after the last document an EOT
// as after all others, wherever rows end.
func TestScanEndsEveryDocument(t *testing.T) {
	docs := randomDocs(3, 7, 12)
	d := build(t, docs, BuildOptions{ShardTokens: 20})
	var want []int32
	for _, doc := range documents(t, &d.train) {
		for _, c := range []byte(doc) {
			want = append(want, int32(c))
		}
		want = append(want, int32(byteTokenizer.EOT))
	}
	for context := 1; context <= len(want)+2; context++ {
		l, err := d.ScanLoader(context)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := l.Batch(&b, 0, int(l.Windows())+1); err != nil {
			t.Fatal(err)
		}
		var got []int32
		for _, target := range b.Targets {
			if target != Ignore {
				got = append(got, target)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("context %d: targets %d, want %d", context, got, want)
		}
	}
}
