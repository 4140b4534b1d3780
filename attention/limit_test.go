package attention

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a layout is foreseen to take is never less than what it has.
func TestEntriesAreAnUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := stage(anyPattern(t), 0, 1)
		length, heads := rapid.IntRange(1, 900).Draw(t, "length"), rapid.IntRange(2, 9).Draw(t, "heads")
		l, err := Compile(p, length, heads, 0)
		if err != nil || l == nil {
			return
		}
		has := 0
		for _, g := range l.Graphs {
			for i, b := range g.Blocks {
				has++
				if i == 0 || &b.Keys[0] != &g.Blocks[i-1].Keys[0] { // blocks may share their ranges
					has += len(b.Keys)
				}
			}
		}
		if foreseen := p.entries(length, heads); float64(has) > foreseen {
			t.Fatalf("%s, %d tokens, %d heads: %d blocks and ranges, %.0f foreseen", p, length, heads, has, foreseen)
		}
	})
}

// Patterns that would take gigabytes to lay out are refused at once; those that are of use on rows of a million tokens
// are not.
func TestPatternsOfTooManyBlocksAreRefused(t *testing.T) {
	for _, c := range []struct {
		text          string
		heads, layers int
		refused       bool
	}{
		{"bigbird:block=1", 4, 1, true},
		{"bigbird:random=99999999", 1, 1, true},
		{"full,bigbird", 64, 64, true},
		{"longnet:1", 64, 1, true},
		{"longformer:1:1,fixed:2:1,fixed:4:1,fixed:6:1", 4, 4, true},
		{"full,bigbird", 8, 8, false},
		{"longnet", 16, 64, false},
		{"window:256,longformer,strided,fixed,linear", 64, 64, false},
	} {
		list, err := ParseList(c.text)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = CheckLayers(list, 1<<20, c.heads, c.layers)
		var e *Error
		if is := errors.As(err, &e) && strings.Contains(e.Message, "too many separate blocks"); is != c.refused ||
			(err != nil) != c.refused {
			t.Errorf("%s for %d heads and %d layers: %v; refused %v wanted", c.text, c.heads, c.layers, err, c.refused)
		}
		if c.refused {
			if _, err := CompileLayers(list, 1<<20, c.heads, c.layers); err == nil {
				t.Errorf("%s was laid out", c.text)
			}
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: it took %v to say so", c.text, took)
		}
	}
}

// Drawing many of many takes no longer than their number, and draws each once.
func TestBigBirdDrawsMany(t *testing.T) {
	b := BigBird{Window: 1, Random: 100_000, Block: 1, Seed: 3}
	drawn := b.draw(5, 150_005, 150_005, 0, 0)
	if len(drawn) != b.Random || !slices.IsSorted(drawn) || len(slices.Compact(drawn)) != b.Random || drawn[0] < 5 ||
		drawn[b.Random-1] >= 150_005 {
		t.Errorf("%d numbers, from %d to %d", len(drawn), drawn[0], drawn[len(drawn)-1])
	}
}

// Bytes tells what a layout really keeps of the heap.
func TestBytesAreThoseOfTheHeap(t *testing.T) {
	for _, text := range []string{
		"window:64", "longformer:64:64", "bigbird:block=8", "bigbird", "strided:64", "fixed:64:4", "longnet:64",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		is, says := math.Inf(1), 0.0
		for range 3 { // the runtime, too, allocates now and then
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			l, err := Compile(p.Resolve(1<<17, 1), 1<<17, 4, 0)
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			is, says = min(is, float64(after.HeapAlloc)-float64(before.HeapAlloc)), float64(Bytes(l))
			runtime.KeepAlive(l)
		}
		t.Logf("%s: %.0f bytes, %.0f said", text, is, says)
		if is > 1.1*says+16<<10 {
			t.Errorf("%s: %.0f bytes of heap, Bytes says %.0f", text, is, says)
		}
	}
}
