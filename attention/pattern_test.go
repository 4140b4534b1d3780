package attention

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
)

// sees is a pattern's definition as its file gives it: how often query i of a head sees key j ≤ i. Of a pattern that
// depends on the depth it is the definition of the last layer.
func sees(p Pattern, i, j, head, heads, layer int) int {
	count := func(visible bool) int {
		if visible {
			return 1
		}
		return 0
	}
	switch p := p.(type) {
	case Full, Linear:
		return 1
	case Window:
		return count(i-j < p.Keys)
	case Longformer:
		d := 1
		if n := len(p.Dilations); n > 0 && (head >= heads-p.Heads || p.Heads == 0 && head >= heads-2) {
			d = p.Dilations[n-1]
		}
		return count((i-j)%d == 0 && (i-j)/d < p.Window || j < p.Global)
	case BigBird:
		return count(slices.Contains(p.sees(i/p.Block, head, layer), j/p.Block)) // sees is tested by itself
	case Strided:
		if head%2 == 0 {
			return count(i-j < p.Stride)
		}
		return count((i-j)%p.Stride == 0)
	case Fixed:
		s := head % (p.Block / p.Columns)
		at := j % p.Block
		return count(j/p.Block == i/p.Block || p.Block-p.Columns*(s+1) <= at && at < p.Block-p.Columns*s)
	case LongNet:
		n := 0
		for _, b := range p.Branches {
			same := j/b.Segment == i/b.Segment
			o := head % b.Dilation
			n += count(same && i%b.Segment%b.Dilation == o && j%b.Segment%b.Dilation == o)
		}
		return n
	}
	panic(fmt.Sprintf("%T has no definition", p))
}

// anyPattern draws a pattern with options of the size of rows of some hundred tokens.
func anyPattern(t *rapid.T) Pattern {
	n := func(low, high int, name string) int { return rapid.IntRange(low, high).Draw(t, name) }
	switch n(0, 7, "pattern") {
	case 0:
		return Full{}
	case 7:
		texts := []string{"linear", "linear:gated", "delta", "delta:gated", "gla"}
		p, err := Parse(rapid.SampledFrom(texts).Draw(t, "linear"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	case 1:
		return Window{n(1, 200, "window")}
	case 2:
		l := Longformer{Window: n(1, 150, "window"), Global: n(1, 150, "global")}
		for range n(0, 2, "dilations") {
			l.Dilations = append(l.Dilations, n(1, 40, "dilation"))
			l.Heads = n(0, 2, "dilated heads")
		}
		return l
	case 3:
		return BigBird{n(1, 4, "window"), n(0, 4, "random"), n(0, 3, "global"), n(1, 100, "block"), n(0, 1<<30, "seed")}
	case 4:
		return Strided{n(1, 100, "stride")}
	case 5:
		block := n(1, 100, "block")
		return Fixed{block, n(1, block, "columns")}
	}
	l := LongNet{[]Branch{{n(1, 150, "segment"), 1}}, rapid.Bool().Draw(t, "depth")}
	for range n(0, 3, "branches") {
		r := n(1, 12, "dilation")
		l.Branches = append(l.Branches, Branch{r * n(1, 30, "segment/dilation"), r})
	}
	return l
}

// matrix returns how often each query of a head sees each key of a row, from the layout.
func matrix(l *device.Layout, length, head int) [][]int {
	m := make([][]int, length)
	for i := range m {
		m[i] = make([]int, i+1)
	}
	if l == nil {
		for i := range m {
			for j := range m[i] {
				m[i][j] = 1
			}
		}
		return m
	}
	for _, b := range l.Of(head).Blocks {
		for q := range b.Queries.Count {
			i := b.Queries.First + q*b.Queries.Step
			for _, r := range b.Keys {
				for k := range r.Count {
					j := r.First + k*r.Step
					if i < length && r.Near <= i-j && i-j < r.Far {
						m[i][j]++
					}
				}
			}
		}
	}
	return m
}

// Each layout sees exactly the pairs of its pattern's definition, each once, or as often as branches list it; every
// query sees itself; and the layout of a row serves every shorter row.
func TestLayoutIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		length, heads := rapid.IntRange(1, 330).Draw(t, "length"), rapid.IntRange(2, 5).Draw(t, "heads")
		layer := rapid.IntRange(0, 3).Draw(t, "layer")
		shorter := rapid.IntRange(1, length).Draw(t, "shorter")
		l, err := Compile(p, length, heads, layer)
		if err != nil {
			t.Fatal(err)
		}
		head := rapid.IntRange(0, heads-1).Draw(t, "head")
		for i, row := range matrix(l, shorter, head) {
			if row[i] == 0 {
				t.Fatalf("%s, length %d, head %d: query %d does not see itself", p, length, head, i)
			}
			for j, got := range row {
				if want := sees(p, i, j, head, heads, layer); got != want {
					t.Fatalf("%s, length %d, head %d, layer %d: query %d sees key %d %d times, want %d",
						p, length, head, layer, i, j, got, want)
				}
			}
		}
	})
}

// A layout keeps what device.Layout promises: blocks of at most 64 queries, that hold each position once, or more
// often if Overlap says so; keys within the row; ranges that are not empty.
func TestLayoutIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		length, heads := rapid.IntRange(1, 500).Draw(t, "length"), rapid.IntRange(2, 9).Draw(t, "heads")
		l, err := Compile(p, length, heads, 0)
		if err != nil || l == nil {
			return
		}
		if l.Len != length || len(l.Head) != heads && l.Head != nil {
			t.Fatalf("%s: a layout for %d tokens and %d heads, want %d and %d", p, l.Len, len(l.Head), length, heads)
		}
		for h := range heads {
			g := l.Of(h)
			times := make([]int, length)
			for _, b := range g.Blocks {
				if q := b.Queries; q.Count < 1 || q.Count > 64 || q.First < 0 || q.Step < 1 || after(q) > length {
					t.Fatalf("%s, length %d: queries %+v", p, length, q)
				}
				for k := range b.Queries.Count {
					times[b.Queries.First+k*b.Queries.Step]++
				}
				for _, r := range b.Keys {
					if r.Count < 1 || r.First < 0 || r.Step < 1 || r.First > after(b.Queries)-1 || r.Near < 0 ||
						r.Far <= r.Near {
						t.Fatalf("%s, length %d: queries %+v look at %+v", p, length, b.Queries, r)
					}
				}
			}
			for i, n := range times {
				if n == 0 || n > 1 && !g.Overlap {
					t.Fatalf("%s, length %d, head %d: query %d is in %d blocks, overlap %v",
						p, length, h, i, n, g.Overlap)
				}
			}
		}
	})
}

// The count from ranges is the count of the matrix, pair by pair.
func TestMeasureCountsPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		length, heads := rapid.IntRange(1, 300).Draw(t, "length"), rapid.IntRange(2, 5).Draw(t, "heads")
		shorter := rapid.IntRange(1, length).Draw(t, "shorter")
		l, err := Compile(p, length, heads, 1)
		if err != nil {
			t.Fatal(err)
		}
		var pairs int64
		most := 0
		for h := range heads {
			for _, row := range matrix(l, shorter, h) {
				n := 0
				for _, times := range row {
					n += times
				}
				pairs += int64(n)
				most = max(most, n)
			}
		}
		if c := Measure(l, shorter, heads); c.Pairs != pairs || c.Max != most {
			t.Fatalf("%s, %d of %d tokens, %d heads: %d pairs and at most %d keys, counted %d and %d",
				p, shorter, length, heads, c.Pairs, c.Max, pairs, most)
		}
	})
}

// Pairs have closed forms at lengths where no list of them would do.
func TestPairsHaveClosedForms(t *testing.T) {
	const n = 1 << 17
	sum := func(f func(i int) int) (s int64) {
		for i := range n {
			s += int64(f(i))
		}
		return s
	}
	for _, c := range []struct {
		text  string
		heads int
		want  int64
	}{
		{"full", 3, 3 * int64(n) * (n + 1) / 2},
		{"window:1000", 1, n*1000 - 1000*999/2},
		{"longformer:512:64", 1, n*(512+64) - (512+64)*(512+63)/2},
		// Head 0 has no gaps. The other sees every third key, 200 of them where there are so many, and the first 64.
		{"longformer:200:64:dilation=3:heads=1", 2, n*(200+64) - (200+64)*(200+63)/2 + sum(func(i int) int {
			if i < 64 {
				return i + 1
			}
			return 64 + min((i-64)/3+1, 200)
		})},
		{"strided:384", 2, n*384 - 384*383/2 + sum(func(i int) int { return (i + 384) / 384 })},
		{"fixed:256:8", 1, sum(func(i int) int { return i%256 + 1 + i/256*8 })},
		// Random blocks are full from block 5 on: before them are the first and the two of the window.
		{"bigbird", 1, sum(func(i int) int { return i%64 + 1 + 64*min(i/64, 5) })},
		// Σ (N/w) · (w/r)(w/r + 1)/2, ATT-16 with the diagonal
		{"longnet:512/1:2048/4:131072/64", 1, n/512*512*513/2 + n/2048*512*513/2 + 2048*2049/2},
	} {
		p, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Compile(p, n, c.heads, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := Measure(l, n, c.heads).Pairs; got != c.want {
			t.Errorf("%s: %d pairs in %d tokens, the closed form says %d", c.text, got, n, c.want)
		}
	}
}

// A block of BigBird sees its window, the global blocks and as many different others as there are, and each of these
// as often as any other.
func TestBigBirdDrawsEvenly(t *testing.T) {
	b := BigBird{2, 3, 1, 64, 7}
	const row, heads, layers = 11, 64, 64
	count := map[int]int{}
	for h := range heads {
		for l := range layers {
			list := b.sees(row, h, l)
			if len(list) != 6 || list[0] != 0 || list[4] != 10 || list[5] != 11 || !slices.IsSorted(list) ||
				len(slices.Compact(slices.Clone(list))) != 6 {
				t.Fatalf("head %d, layer %d: block 11 sees %v, want 0, three of 1 … 9, 10, 11", h, l, list)
			}
			for _, k := range list[1:4] {
				count[k]++
			}
		}
	}
	const want = 3.0 / 9 * heads * layers
	for k := 1; k <= 9; k++ {
		if sigmas := (float64(count[k]) - want) / math.Sqrt(want*2/3); math.Abs(sigmas) > 4 {
			t.Errorf("block %d was drawn %d times of %d, want %.0f (%.1f standard deviations)",
				k, count[k], heads*layers, want, sigmas)
		}
	}
	other := b
	other.Seed++
	if slices.Equal(other.sees(40, 0, 0), b.sees(40, 0, 0)) && slices.Equal(other.sees(41, 0, 0), b.sees(41, 0, 0)) {
		t.Errorf("seeds %d and %d draw the same blocks", b.Seed, other.Seed)
	}
	if got := b.sees(3, 0, 0); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("block 3 sees %v, want all: there is one block to draw from", got)
	}
}

// A layout takes memory in proportion to the row, at most some tens of bytes for a token and graph.
func TestLayoutGrowsWithTheRow(t *testing.T) {
	for _, text := range []string{"window:256", "longformer", "bigbird", "strided:384", "fixed:384:8", "longnet"} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var bytes [2]int64
		for i, n := range []int{1 << 15, 1 << 17} {
			l, err := Compile(p, n, 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			bytes[i] = Bytes(l)
			if most := int64(16 * n * len(l.Graphs)); bytes[i] > most {
				t.Errorf("%s: %d bytes for %d tokens, at most %d wanted", text, bytes[i], n, most)
			}
		}
		if bytes[1] > 5*bytes[0] {
			t.Errorf("%s: %d bytes for 32k tokens, %d for 128k", text, bytes[0], bytes[1])
		}
	}
}

// Linear attention computes pairs within chunks of 64 tokens only, whatever the length.
func TestLinearCostIsThatOfItsChunks(t *testing.T) {
	for length, want := range map[int]float64{64: 1, 128: 2. / 3, 1024: 2. / 17} {
		d, err := Describe("linear:gated", length, 4, 0, 0)
		if err != nil || len(d) != 1 || d[0].Density != 1 || math.Abs(d[0].Cost-want) > 1e-12 {
			t.Errorf("%d tokens: %+v, %v; want a cost of %v", length, d, err, want)
		}
	}
}

func TestTextRoundTrips(t *testing.T) {
	for text, want := range map[string]string{
		"full": "full", " window:256": "window:256", "window:keys=7": "window:7",
		"longformer": "longformer:window=512:global=64", "longformer:128": "longformer:window=128:global=64",
		"longformer:global=3":     "longformer:window=512:global=3",
		"bigbird:3:2":             "bigbird:window=3:random=2:global=1:block=64:seed=5",
		"bigbird:block=16:seed=9": "bigbird:window=2:random=3:global=1:block=16:seed=9",
		"strided":                 "strided:128", "strided:7": "strided:7", "fixed": "fixed:block=128:columns=8",
		"fixed:64:16": "fixed:block=64:columns=16",
		"longnet":     "longnet:512/1:1024/2:2048/4:4096/8:8192/16:16384/32", "longnet:8192": "longnet:8192/1:16384/2",
		"longnet:512/1:4096/4":       "longnet:512/1:4096/4",
		"longnet:8192:depth":         "longnet:8192/1:16384/2:depth",
		"longnet:512/1:4096/4:depth": "longnet:512/1:4096/4:depth",
		"longformer:8:4:dilation=2":  "longformer:window=8:global=4:dilation=2",
		"longformer:8:4:1/1/3:1":     "longformer:window=8:global=4:dilation=1/1/3:heads=1",
		"linear":                     "linear", "linear:gated": "linear:gated",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r := p.Resolve(16384, 5)
		if r.String() != want {
			t.Errorf("%s becomes %s, want %s", text, r, want)
		}
		again, err := Parse(r.String())
		if err != nil || again.String() != want || again.Resolve(99, 1).String() != want {
			t.Errorf("%s: read back as %v (%v)", want, again, err)
		}
		if unresolved, err := Parse(p.String()); err != nil || unresolved.Resolve(16384, 5).String() != want {
			t.Errorf("%s: %s is read back as %v (%v)", text, p, unresolved, err)
		}
	}
}

// What cannot work is said with what is wrong and what to try, and nothing is made.
func TestBadPatternsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "pattern is empty",
		"windw:3":                        `unknown attention pattern "windw"`,
		"full:3":                         "no options",
		"linear:3":                       "one option is gated",
		"gla:gated":                      "no options",
		"delta:gate":                     "one option is gated",
		"window":                         "does not say how many",
		"window:":                        `keys = ""`,
		"window:0":                       "leaves query 0 without a key",
		"window:-1":                      `keys = "-1" is not a whole number`,
		"window:2.5":                     "not a whole number",
		"window:1e3":                     "not a whole number",
		"window:3:4":                     "one option, keys",
		"window:99999999999999999999999": "not a whole number",
		"window:1073741825":              "to 1073741824",
		"longformer:0":                   "window = \"0\"",
		"longformer:3:-2":                "global",
		"longformer:3:4:5:6:7":           "4 options, window, global, dilation, heads",
		"longformer:dilation=1/0":        "dilation = \"0\"",
		"longformer:dilation=":           "dilation = \"\"",
		"longformer:dilation=2:heads=0":  "heads = \"0\"",
		"longformer:heads=2":             "there is no dilation",
		"longnet:64/2:128/1:depth":       "first branch only, which must have dilation 1",
		"longnet:depth:64":               "segment = \"depth\"",
		"longformer:w=3":                 `unknown option "w"`,
		"longformer:3:window=4":          "window is given twice",
		"bigbird:0":                      "window",
		"bigbird:block=0":                "block",
		"strided:0":                      "stride",
		"fixed:0":                        "block",
		"fixed:8:9":                      "9 columns exceed the block of 8",
		"longnet:0":                      "segment",
		"longnet:8/0":                    "dilation",
		"longnet:8/3":                    "not a multiple of its dilation",
		"longnet:8/1:16":                 "segment 16 has no dilation",
		"longnet:x":                      "segment",
	} {
		p, err := Parse(text)
		var e *Error
		if p != nil || !errors.As(err, &e) || !strings.Contains(e.Message, want) || e.Try == "" {
			t.Errorf("%q: %v, %v; want an error with %q", text, p, err, want)
		}
	}
	if list, err := ParseList("full, window:3,"); err == nil || !strings.Contains(err.Error(), "pattern is empty") {
		t.Errorf("a list that ends with a comma is read as %v, %v", list, err)
	}
}

// A branch of dilation 1 is what reaches every token; without it the first query left out is named.
func TestLongNetWithoutAWholeBranchIsRefused(t *testing.T) {
	p, err := Parse("longnet:64/2:256/4")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compile(p, 1<<20, 4, 0)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "query 0 of head 1 without a key") ||
		e.Try != "longnet:32/1:64/2:256/4" {
		t.Errorf("longnet:64/2:256/4 gives %v", err)
	}
	for i := range 300 {
		for h := range 4 {
			want := false
			for _, b := range p.(LongNet).Branches {
				want = want || i%b.Segment%b.Dilation == h%b.Dilation
			}
			if got := p.(LongNet).covers(i, h); got != want {
				t.Fatalf("query %d of head %d is covered: %v, want %v", i, h, got, want)
			}
		}
	}
	if _, err := Compile(Strided{64}, 256, 1, 0); err == nil {
		t.Error("strided with one head was accepted")
	}
}

// Layers that see the same share one layout; the random blocks of BigBird are each layer's own.
func TestLayersShareLayouts(t *testing.T) {
	list, err := ParseList("window:64, window:64, full, bigbird:2:3:1:8:1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := CompileLayers(list, 256, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	if l[0] == nil || l[0] != l[1] || l[0] != l[4] || l[2] != nil || l[6] != nil || l[3] == l[7] {
		t.Errorf("the layers' layouts are %v", l)
	}
}

// Pairs counts, in rows of documents, what the definition sees of a query's own document.
func TestPairsAreThoseOfTheDefinitionInADocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		length, heads := rapid.IntRange(1, 330).Draw(t, "length"), rapid.IntRange(2, 5).Draw(t, "heads")
		shorter := rapid.IntRange(1, length).Draw(t, "shorter")
		l, err := Compile(p, length, heads, 1)
		if err != nil {
			t.Fatal(err)
		}
		var start []int32
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			from := 0
			ends := rapid.SliceOfN(rapid.IntRange(0, shorter-1), 0, 8).Draw(t, "documents begin at")
			for i := range shorter {
				if slices.Contains(ends, i) {
					from = i
				}
				start = append(start, int32(from))
			}
		}
		want := int64(0)
		for n, from := range start {
			for j := int(from); j <= n%shorter; j++ {
				for head := range heads {
					want += int64(sees(p, n%shorter, j, head, heads, 1))
				}
			}
		}
		if got := Pairs(l, start, shorter, heads); got != want {
			t.Fatalf("%s, %d heads, rows of %d tokens whose documents begin at %v: %d pairs, want %d",
				p, heads, shorter, start, got, want)
		}
	})
}
