package dataset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Lengths against a sorted list of them.
func TestLengthsAgainstASortedList(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		docs := someDocs(rt, 50)
		d := build(t, docs, BuildOptions{Dir: dir, Replace: true})
		defer d.Close()
		l, err := d.Lengths(false)
		if err != nil {
			rt.Fatal(err)
		}
		var want []uint64
		for _, doc := range docs {
			want = append(want, uint64(len(doc)+1))
		}
		slices.Sort(want)
		at := func(percent int) uint64 { return want[(len(want)*percent+99)/100-1] }
		if l.Shortest != want[0] || l.Median != at(50) || l.P90 != at(90) || l.P99 != at(99) ||
			l.Longest != want[len(want)-1] {
			rt.Fatalf("lengths %v: %+v", want, l)
		}
		for i, b := range l.Bins {
			docs, tokens := uint64(0), uint64(0)
			for _, n := range want {
				if b.From <= n && n < b.To {
					docs, tokens = docs+1, tokens+n
				}
			}
			if b.Documents != docs || b.Tokens != tokens || i > 0 && b.From != l.Bins[i-1].To {
				rt.Fatalf("lengths %v: bin %+v, want %d documents, %d tokens", want, b, docs, tokens)
			}
		}
		if first, last := l.Bins[0], l.Bins[len(l.Bins)-1]; want[0] < first.From || want[len(want)-1] >= last.To {
			rt.Fatalf("lengths %d to %d, bins %d to %d", want[0], want[len(want)-1], first.From, last.To)
		}
	})
}

// Documents that are cut and tokens that are left out, against counting token by token.
func TestUtilisationCountsCutsAndWhatIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		context := rapid.IntRange(1, 40).Draw(rt, "context")
		d := build(t, someDocs(rt, context), BuildOptions{Dir: dir, Replace: true})
		defer d.Close()
		for _, kind := range packings {
			l, err := d.PackedLoader(kind, context, 0)
			if kind == Concat && d.train.tokens <= uint64(context) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			row := make([]int64, d.train.tokens) // that holds each token; −1: none
			for i := range row {
				row[i] = -1
			}
			for r := range l.Windows() {
				if kind == Concat {
					for i := r * uint64(context); i < (r+1)*uint64(context); i++ {
						row[i] = int64(r)
					}
					continue
				}
				for i := l.packed.first(r); i != noPiece; i = l.packed.after(i) {
					at, n := l.packed.piece(i)
					for j := range uint64(n) {
						row[at+j] = int64(r)
					}
				}
			}
			cut, left := uint64(0), uint64(0)
			if err := d.train.documents(func(start, end, _ uint64) {
				held := row[start:end]
				if slices.ContainsFunc(held, func(r int64) bool { return r < 0 || r != held[0] }) {
					cut++
				}
				for _, r := range held {
					if r < 0 {
						left++
					}
				}
			}); err != nil {
				rt.Fatal(err)
			}
			u, err := d.Utilisation(kind, context)
			if err != nil || u.Cut != cut || u.LeftOut != left {
				rt.Fatalf("%s, context %d: %+v, %v; want %d documents cut, %d tokens left out",
					kind, context, u, err, cut, left)
			}
		}
	})
}
