package dataset

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The arithmetic of skip lists is that of sets: what is left is the samples in order without those taken out, in
// however many goes, and the list reads back as it was written.
func TestSkipListLeavesOutExactlyItsSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 300
		left := make([]uint64, n)
		for i := range left {
			left[i] = uint64(i)
		}
		var list SkipList
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			from := rapid.IntRange(0, len(left)-1).Draw(t, "from")
			to := rapid.IntRange(from, min(from+40, len(left)-1)).Draw(t, "to")
			list = list.Without(uint64(from), uint64(to))
			left = slices.Delete(left, from, to)
			for k, want := range left {
				if got := list.At(uint64(k)); got != want {
					t.Fatalf("%v: sample %d is %d, want %d", list, k, got, want)
				}
			}
			for i, r := range list {
				if r.From >= r.To || i > 0 && r.From <= list[i-1].To {
					t.Fatalf("%v is not in its normal form", list)
				}
			}
			back, err := ParseSkips(list.String())
			if err != nil || !slices.Equal(back, list) {
				t.Fatalf("%v reads back as %v, %v", list, back, err)
			}
		}
		// Two lists agree below k exactly if they give the same first k samples.
		k := uint64(rapid.IntRange(0, len(left)-1).Draw(t, "k"))
		from := uint64(rapid.IntRange(0, len(left)-1).Draw(t, "more from"))
		more := list.Without(from, from+3)
		same := true
		for i := range k {
			same = same && list.At(i) == more.At(i)
		}
		if got := slices.Equal(list.below(k), more.below(k)); got != same {
			t.Fatalf("%v and %v: equal below %d is %v, want %v", list, more, k, got, same)
		}
	})
}

func TestBadSkipListsAreErrors(t *testing.T) {
	for _, text := range []string{
		",", "1", "1:", ":2", "2:2", "3:1", "-1:2", "1:2:3", "1:5,4:6", "4:6,1:2", "1:2,", "1:99999999999999999999",
		"a:b", "1.0:2",
	} {
		if list, err := ParseSkips(text); err == nil {
			t.Errorf("%q is read as %v", text, list)
		}
	}
	if list, err := ParseSkips("1:2,2:4, 7:9"); err != nil || list.At(1) != 4 || list.At(4) != 9 {
		t.Errorf("neighbouring ranges: %v, %v", list, err)
	}
}

// A loader with a list reads what one without reads at the samples that are left, in any batch size and across epochs.
func TestLoaderSkips(t *testing.T) {
	l, _ := trainLoader(t, 30, 60, 8, 1)
	plain, _ := trainLoader(t, 30, 60, 8, 1)
	n := l.Windows()
	list := SkipList{{3, 5}, {9, 10}, {n - 2, n + 7}, {2 * n, 3 * n}}
	l.Skip(list)
	const rows = 7
	var got, want Batch
	for first := uint64(0); first < 2*n; first += rows {
		if err := l.Batch(&got, first, rows); err != nil {
			t.Fatal(err)
		}
		for r := range uint64(rows) {
			if err := plain.Batch(&want, list.At(first+r), 1); err != nil {
				t.Fatal(err)
			}
			if at := r * 8; !slices.Equal(got.Tokens[at:at+8], want.Tokens) ||
				!slices.Equal(got.Targets[at:at+8], want.Targets) {
				t.Fatalf("sample %d with %v is not sample %d without", first+r, list, list.At(first+r))
			}
		}
	}
}

// A state goes on under a list that changes nothing before it, and under no other.
func TestOnlyComingSamplesCanBeLeftOut(t *testing.T) {
	l, _ := trainLoader(t, 30, 60, 8, 1)
	with := func(text string) *Loader {
		t.Helper()
		list, err := ParseSkips(text)
		if err != nil {
			t.Fatal(err)
		}
		other := *l
		other.Skip(list)
		return &other
	}
	for _, c := range []struct {
		was, now string
		sample   uint64
		ok       bool
	}{
		{"", "10:20", 10, true}, {"", "10:20", 11, false}, {"10:20", "", 10, true}, {"10:20", "", 11, false},
		{"4:6", "4:6,10:20", 8, true}, {"4:6", "4:6,10:20", 9, false}, {"4:6", "4:7", 4, true},
		{"4:6", "4:7", 5, false}, {"4:6,6:7", "4:7", 9, true}, {"4:6", "4:6", 1000, true}, {"4:6", "5:7", 4, true},
		{"nonsense", "", 0, false},
	} {
		state := l.State(c.sample)
		state.Skip = c.was
		if err := with(c.now).Check(state); (err == nil) != c.ok {
			t.Errorf("%d samples leaving out %q, then %q: %v", c.sample, c.was, c.now, err)
		}
	}
}

// FuzzSkips: a list that is accepted is the same after it is written and read again, and its samples ascend.
func FuzzSkips(f *testing.F) {
	f.Add("1:2,2:4, 7:9")
	f.Add("0:4611686018427387903")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSkips(text)
		if err != nil || len(text) > 200 {
			return
		}
		if again, err := ParseSkips(list.String()); err != nil || !slices.Equal(again, list) {
			t.Fatalf("%q is read as %v, written and read again as %v, %v", text, list, again, err)
		}
		for k, before := uint64(0), uint64(0); k < 20; k++ {
			at := list.At(k)
			if k > 0 && at <= before ||
				slices.ContainsFunc(list, func(r SkipRange) bool { return r.From <= at && at < r.To }) {
				t.Fatalf("%q: sample %d is %d, after %d", text, k, at, before)
			}
			before = at
		}
	})
}
