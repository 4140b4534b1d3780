package dataset

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var packings = []Packing{Concat, BestFit, Pad}

// fills returns the lengths of the pieces of each row, by the definition of best-fit decreasing: a search over all
// rows.
func fills(lengths []int, context int) [][]int {
	slices.SortFunc(lengths, func(a, b int) int { return b - a })
	var rows [][]int
	var free []int
	for _, n := range lengths {
		best := -1
		for r, f := range free {
			if f >= n && (best < 0 || f < free[best]) {
				best = r
			}
		}
		if best < 0 {
			rows, free, best = append(rows, nil), append(free, context), len(rows)
		}
		rows[best], free[best] = append(rows[best], n), free[best]-n
	}
	return rows
}

// freeOf returns the room left in the rows, sorted: it does not depend on which of two rows with equal room was taken.
func freeOf(rows [][]int, context int) (free []int) {
	for _, row := range rows {
		f := context
		for _, n := range row {
			f -= n
		}
		free = append(free, f)
	}
	slices.Sort(free)
	return free
}

// someDocs draws documents of every length that matters to rows of context tokens: none, about one row, several.
func someDocs(t *rapid.T, context int) []string {
	docs := make([]string, rapid.IntRange(1, 60).Draw(t, "docs"))
	for i := range docs {
		n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(max(context-3, 0), context+1),
			rapid.IntRange(0, 3*context)).Draw(t, "bytes")
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(i*31 + j)
		}
		docs[i] = string(b)
	}
	return docs
}

// Rows of best_fit hold every token of the stream once, no document is cut that fits a row, no row is overfull, and
// the rows have the room left that a search over all rows leaves. Rows of pad hold the beginning of each document.
func TestPackingAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		context := rapid.IntRange(1, 200).Draw(t, "context")
		docs, starts := lengthsOf(rapid.SliceOfN(rapid.IntRange(1, 3*context), 1, 300).Draw(t, "lengths"))
		for _, kind := range []Packing{BestFit, Pad} {
			k, err := docs.pack(kind, context)
			if err != nil {
				t.Fatal(err)
			}
			seen := make([]bool, starts[len(starts)-1])
			var lengths []int
			var rows [][]int
			trained := uint64(0)
			for r := range k.rows {
				var row []int
				for i := k.first(r); i != noPiece; i = k.after(i) {
					at, n := k.piece(i)
					for j := at; j < at+uint64(n); j++ {
						if seen[j] {
							t.Fatalf("%s: token %d stands in two rows", kind, j)
						}
						seen[j] = true
					}
					doc, begins := slices.BinarySearch(starts, at)
					if !begins {
						doc--
					}
					if whole := int(starts[doc+1] - starts[doc]); whole <= context && n != whole ||
						(at-starts[doc])%uint64(context) != 0 {
						t.Fatalf("%s, context %d: document %d of %d tokens is cut into a piece of %d at %d",
							kind, context, doc, whole, n, at)
					}
					row, lengths, trained = append(row, n), append(lengths, n), trained+uint64(n)
				}
				rows = append(rows, row)
			}
			if trained != k.trained {
				t.Fatalf("%s: %d targets count, %d are said to", kind, trained, k.trained)
			}
			if kind == Pad {
				if k.rows != uint64(len(starts)-1) {
					t.Fatalf("pad: %d rows for %d documents", k.rows, len(starts)-1)
				}
				continue
			}
			if trained != starts[len(starts)-1] {
				t.Fatalf("best_fit: %d of %d tokens stand in rows", trained, starts[len(starts)-1])
			}
			if d := cmp.Diff(freeOf(fills(lengths, context), context), freeOf(rows, context)); d != "" {
				t.Fatalf("context %d: room left in the rows (-definition +packing):\n%s", context, d)
			}
		}
	})
}

// lengthsOf is documents of these lengths without prompts, and where they start, the end of the last included.
func lengthsOf(lengths []int) (docSpans, []uint64) {
	starts := []uint64{0}
	for _, n := range lengths {
		starts = append(starts, starts[len(starts)-1]+uint64(n))
	}
	return func(f func(start, end, prompt uint64)) error {
		for i := range lengths {
			f(starts[i], starts[i+1], 0)
		}
		return nil
	}, starts
}

// epoch returns, sorted, the targets that count in one epoch, each with the token before it.
func epoch(t *rapid.T, l *Loader) (pairs [][2]int32) {
	var b Batch
	if err := l.Batch(&b, 0, int(l.Windows())); err != nil {
		t.Fatal(err)
	}
	for i, target := range b.Targets {
		if target != Ignore {
			pairs = append(pairs, [2]int32{int32(b.Tokens[i]), target})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	return pairs
}

// Each row is its pieces, each a document that begins where the piece does, then padding: EOT that is ignored and seen
// by no other position.
func TestRowsArePiecesThenPadding(t *testing.T) {
	d := build(t, randomDocs(2, 80, 70), BuildOptions{ShardTokens: 400})
	stream := d.train.all(t)
	for _, kind := range []Packing{BestFit, Pad} {
		const context = 48
		l, err := d.PackedLoader(kind, context, 3)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		padding := 0
		for k := range l.Windows() {
			if err := l.Batch(&b, k, 1); err != nil {
				t.Fatal(err)
			}
			want := Batch{Rows: 1, Context: context}
			for i := l.packed.first(l.At(k)); i != noPiece; i = l.packed.after(i) {
				from := int32(len(want.Tokens))
				pos, n := l.packed.piece(i)
				for j := pos; j < pos+uint64(n); j++ {
					next := byteTokenizer.EOT
					if j+1 < uint64(len(stream)) {
						next = stream[j+1]
					}
					want.Tokens, want.Targets, want.DocStart = append(want.Tokens, stream[j]),
						append(want.Targets, int32(next)), append(want.DocStart, from)
				}
			}
			for i := len(want.Tokens); i < context; i++ {
				want.Tokens, want.Targets, want.DocStart = append(want.Tokens, byteTokenizer.EOT),
					append(want.Targets, Ignore), append(want.DocStart, int32(i))
				padding++
			}
			if diff := cmp.Diff(want, b); diff != "" {
				t.Fatalf("%s, sample %d (-pieces +row):\n%s", kind, k, diff)
			}
		}
		if padding == 0 {
			t.Errorf("%s: no row has padding", kind)
		}
	}
}

// What the rows of best_fit train on is every token of the stream after the one before it, prompts left out; of pad,
// that of the first T tokens of each document. Utilisation says how much that is, for each packing.
func TestPackedRowsTrainOnTheStream(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		context := rapid.IntRange(1, 40).Draw(rt, "context")
		docs := someDocs(rt, context)
		opt := BuildOptions{Dir: dir, Replace: true, ShardTokens: rapid.Uint64Range(1, 300).Draw(rt, "shard")}
		if rapid.Bool().Draw(rt, "prompts") {
			docs, opt.PromptEnd = append(docs, "ask=>answer", "=>"), "=>"
		}
		d := build(t, docs, opt)
		defer d.Close()
		stream := append(d.train.all(t), byteTokenizer.EOT)
		for _, kind := range packings {
			l, err := d.PackedLoader(kind, context, 1)
			if kind == Concat && len(stream)-1 <= context {
				continue // no whole window
			}
			if err != nil {
				rt.Fatal(err)
			}
			limit := uint64(math.MaxUint64)
			if kind == Pad {
				limit = uint64(context)
			}
			var want [][2]int32
			err = d.train.documents(func(start, end, prompt uint64) {
				for i := start; i < min(end, start+min(limit, end-start)); i++ {
					if i+1 > start+prompt && (kind != Concat || i < l.Windows()*uint64(context)) {
						want = append(want, [2]int32{int32(stream[i]), int32(stream[i+1])})
					}
				}
			})
			if err != nil {
				rt.Fatal(err)
			}
			slices.SortFunc(want, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
			if diff := cmp.Diff(want, epoch(rt, l)); diff != "" {
				rt.Fatalf("%s, context %d (-stream +rows):\n%s", kind, context, diff)
			}
			u, err := d.Utilisation(kind, context)
			if err != nil || u.Trained != uint64(len(want)) || u.Positions != l.Windows()*uint64(context) {
				rt.Fatalf("%s, context %d: %+v, %v; want %d targets in %d rows",
					kind, context, u, err, len(want), l.Windows())
			}
		}
	})
}

// Over kills at any sample, on any number of machines after each, with any batch, three epochs of each packing hold
// what an uninterrupted reading by one machine holds: every row once an epoch, in the same order.
func TestEachRowOnceOverKillsAndMachines(t *testing.T) {
	d := build(t, randomDocs(4, 50, 90), BuildOptions{ShardTokens: 500})
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(packings).Draw(t, "packing")
		context := rapid.IntRange(8, 64).Draw(t, "context")
		open := func() *Loader {
			l, err := d.PackedLoader(kind, context, 11)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		rows := l.Windows()
		var whole, b Batch
		if err := l.Batch(&whole, 0, int(3*rows)); err != nil {
			t.Fatal(err)
		}
		seen := make([]int, 3*rows)
		saved, done := l.State(0), uint64(0) // done counts what the last checkpoint covers
		for done < 3*rows {
			raw, err := json.Marshal(saved)
			var s State
			if err != nil || len(raw) >= 200 || json.Unmarshal(raw, &s) != nil {
				t.Fatalf("state of %d bytes: %s, %v", len(raw), raw, err)
			}
			world := rapid.Uint64Range(1, 5).Draw(t, "machines")
			count := min(rapid.Uint64Range(1, 2*rows).Draw(t, "samples until the kill"), 3*rows-done)
			kept := rapid.Uint64Range(0, count).Draw(t, "of them in the checkpoint")
			for rank := range world {
				l := open()
				if err := l.Check(s); err != nil {
					t.Fatal(err)
				}
				for k := s.Sample + rank; k < s.Sample+count; k += world {
					if err := l.Batch(&b, k, 1); err != nil {
						t.Fatal(err)
					}
					at := int(k) * context
					if !slices.Equal(b.Tokens, whole.Tokens[at:][:context]) ||
						!slices.Equal(b.Targets, whole.Targets[at:][:context]) {
						t.Fatalf("%s: sample %d differs on machine %d of %d", kind, k, rank, world)
					}
					if k < s.Sample+kept {
						seen[k/rows*rows+l.At(k)]++
					}
				}
			}
			done += kept
			saved = l.State(done)
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("%s: row %d of epoch %d came %d times", kind, i%int(rows), i/int(rows), n)
			}
		}
	})
}

// Documents at the edges: of one token (EOT alone), of exactly a row, of one token more, and none that fill a row.
func TestDocumentsAtTheEdgesOfRows(t *testing.T) {
	const context = 8
	for _, c := range []struct {
		lengths []int
		rows    string // of best_fit: the lengths of their pieces, the last that was put in first
	}{
		{[]int{1}, "[1]"},
		{[]int{8}, "[8]"},
		{[]int{9}, "[8] [1]"},
		{[]int{16, 1, 8}, "[8] [8] [8] [1]"},
		{[]int{5, 3, 4, 2, 2}, "[3 5] [2 2 4]"},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, "[1 1 1 1 1 1 1 1] [1]"},
		{[]int{6, 7, 1, 2}, "[1 7] [2 6]"},
		{nil, ""},
	} {
		docs, _ := lengthsOf(c.lengths)
		k, err := docs.pack(BestFit, context)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for r := range k.rows {
			var row []int
			for i := k.first(r); i != noPiece; i = k.after(i) {
				_, n := k.piece(i)
				row = append(row, n)
			}
			rows = append(rows, fmt.Sprint(row))
		}
		if got := strings.Join(rows, " "); got != c.rows {
			t.Errorf("documents of %v tokens: rows %s, want %s", c.lengths, got, c.rows)
		}
	}
}

// A state says how documents were packed, and is refused where they are packed otherwise.
func TestStateOfAnotherPackingIsRefused(t *testing.T) {
	d := build(t, randomDocs(1, 30, 50), BuildOptions{})
	for _, was := range packings {
		for _, now := range packings {
			a, err := d.PackedLoader(was, 16, 1)
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.PackedLoader(now, 16, 1)
			if err != nil {
				t.Fatal(err)
			}
			says := fmt.Sprintf("packs documents with %s, but this config with %s\n  restore data.packing", was, now)
			if err := b.Check(a.State(3)); (err == nil) != (was == now) ||
				err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s, then %s: %v", was, now, err)
			}
		}
	}
	if _, err := d.PackedLoader("best", 16, 1); err == nil || !strings.Contains(err.Error(), "best_fit") {
		t.Errorf("packing best: %v", err)
	}
	a, _ := d.PackedLoader(BestFit, 16, 1)
	b, _ := d.PackedLoader(BestFit, 16, 1)
	if b.packed.next[0]++; a.packed.fingerprint() == b.packed.fingerprint() {
		t.Error("another order of pieces has the same fingerprint")
	}
	other := a.State(3)
	other.Packing = "best_fit 12345678"
	if err := a.Check(other); err == nil || !strings.Contains(err.Error(), "rows with the checksum 12345678") {
		t.Errorf("other rows of the same packing: %v", err)
	}
}

// The set of capacities against a slice of flags, through levels of words.
func TestCapacitiesFindTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 63, 64, 65, 4096, 5000, 300000}).Draw(t, "limit")
		c, flags := newCapacities(limit), make([]bool, limit)
		for range 40 {
			v := rapid.IntRange(0, limit-1).Draw(t, "v")
			if flags[v] = rapid.Bool().Draw(t, "in"); flags[v] {
				c.add(v)
			} else {
				c.remove(v)
			}
			from := rapid.IntRange(0, limit).Draw(t, "from")
			want := slices.Index(flags[from:], true)
			got, found := c.from(from)
			if found != (want >= 0) || found && got != from+want || c.has(v) != flags[v] {
				t.Fatalf("limit %d: from %d on the next is %d (%v), want %d", limit, from, got, found, from+want)
			}
		}
	})
}

// A million documents whose lengths are spread as those of text often are: as many between n and 2n for each n.
func BenchmarkBestFit(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	lengths := make([]int, 1_000_000)
	for i := range lengths {
		lengths[i] = int(math.Exp2(4 + 10*r.Float64()))
	}
	docs, starts := lengthsOf(lengths)
	for b.Loop() {
		k, err := docs.pack(BestFit, 4096)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100*float64(k.trained)/float64(k.rows*4096), "%used")
	}
	b.ReportMetric(float64(b.N)*float64(len(lengths))/1e6/b.Elapsed().Seconds(), "Mdocs/s")
	b.ReportMetric(float64(starts[len(lengths)])/float64(len(lengths)), "tokens/doc")
}

// Rows for evaluation hold the beginning of every document once, all of it where it fits, in batches of any size.
func TestRowsForEvaluationHoldEveryDocumentOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := randomDocs(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(2, 40).Draw(rt, "docs"), 60)
		d := build(t, docs, BuildOptions{ValFraction: 0.5, ShardTokens: 200})
		for _, kind := range packings[1:] {
			context := rapid.IntRange(1, 100).Draw(rt, "context")
			if kind == BestFit {
				context = rapid.IntRange(80, 120).Draw(rt, "context") // no document is longer
			}
			for split, open := range map[*split]func(Packing, int) (*Loader, error){
				&d.val: d.ValRows, &d.train: d.ScanRows,
			} {
				l, err := open(kind, context)
				if err != nil {
					rt.Fatal(err)
				}
				got := piecesOf(rt, l, rapid.IntRange(1, 9).Draw(rt, "rows"))
				var want []string
				all := split.all(t)
				split.documents(func(start, end, prompt uint64) {
					want = append(want, fmt.Sprint(all[start:min(end, start+uint64(context))]))
				})
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					rt.Fatalf("%s, context %d: %s", kind, context, diff)
				}
			}
		}
	})
}

// piecesOf returns the pieces of documents in the rows of l, sorted, and checks that nothing follows its rows.
func piecesOf(t *rapid.T, l *Loader, rows int) (pieces []string) {
	var b Batch
	for k := uint64(0); k < l.Windows()+9; k += uint64(rows) {
		if err := l.Batch(&b, k, rows); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			tokens, targets := b.Tokens[r*b.Context:][:b.Context], b.Targets[r*b.Context:][:b.Context]
			for from := 0; from < b.Context && targets[from] != Ignore; {
				to := from + 1
				for to < b.Context && b.DocStart[r*b.Context+to] == int32(from) {
					to++
				}
				pieces = append(pieces, fmt.Sprint(tokens[from:to]))
				from = to
			}
			if k+uint64(r) >= l.Windows() && targets[0] != Ignore {
				t.Fatalf("sample %d of %d counts", k+uint64(r), l.Windows())
			}
		}
	}
	slices.Sort(pieces)
	return pieces
}
