package attention

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The layers of a model have the stages of a pattern in order and in shares that differ by at most one layer; the last
// layer has the last stage, and every stage has its layers if there are enough.
func TestStagesShareTheLayers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Longformer{Window: 4, Global: 2}
		for i := range rapid.IntRange(1, 9).Draw(t, "stages") {
			p.Dilations = append(p.Dilations, i+1)
		}
		layers := rapid.IntRange(1, 40).Draw(t, "layers")
		share, last := make([]int, len(p.Dilations)), 0
		for layer := range layers {
			d := stage(p, layer, layers).(Longformer).dilation()
			if d < last {
				t.Fatalf("%s: layer %d of %d has dilation %d after %d", p, layer, layers, d, last)
			}
			last = d
			share[d-1]++
		}
		if last != len(p.Dilations) {
			t.Fatalf("%s: the last of %d layers has dilation %d", p, layers, last)
		}
		if layers >= len(share) && slices.Max(share)-slices.Min(share) > 1 {
			t.Fatalf("%s: the stages have %v of %d layers", p, share, layers)
		}
	})
}

// The layers of a model see, pair by pair, what the definition says of their dilation or their branches: those of
// Longformer's appendix, where 6 of 12 layers have no gaps, and LongNet's branches one after the other.
func TestDilationGrowsWithDepth(t *testing.T) {
	for _, c := range []struct {
		text   string
		layers []string // the pattern that each layer is equal to
	}{
		{"longformer:7:3:dilation=1/1/1/2/3/4", []string{
			"longformer:7:3", "longformer:7:3", "longformer:7:3", "longformer:7:3", "longformer:7:3", "longformer:7:3",
			"longformer:7:3:dilation=2", "longformer:7:3:dilation=2", "longformer:7:3:dilation=3",
			"longformer:7:3:dilation=3", "longformer:7:3:dilation=4", "longformer:7:3:dilation=4"}},
		{"longnet:8/1:16/2:64/8:depth", []string{"longnet:8/1", "longnet:8/1:16/2", "longnet:8/1:16/2:64/8"}},
		{"longnet:32:depth", []string{"longnet:32/1", "longnet:32/1", "longnet:32/1:64/2", "longnet:32/1:64/2",
			"longnet:32/1:64/2:128/4", "longnet:32/1:64/2:128/4"}},
	} {
		list, err := ParseList(c.text)
		if err != nil {
			t.Fatal(err)
		}
		const length, heads = 100, 4
		layouts, err := CompileLayers(list, length, heads, len(c.layers))
		if err != nil {
			t.Fatal(err)
		}
		pairs := int64(0)
		for layer, text := range c.layers {
			p, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for head := range heads {
				for i, row := range matrix(layouts[layer], length, head) {
					for j, got := range row {
						want := sees(p, i, j, head, heads, layer)
						if pairs += int64(want); got != want {
							t.Fatalf("%s, layer %d, head %d: query %d sees key %d %d times, want %d",
								c.text, layer, head, i, j, got, want)
						}
					}
				}
			}
		}
		described, err := Describe(c.text, length, heads, len(c.layers), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range described {
			pairs -= int64(d.Layers) * d.Pairs
		}
		if pairs != 0 {
			t.Errorf("%s: the layers see %d pairs more than described", c.text, pairs)
		}
	}
}

// More heads with gaps than there are heads is an error, whichever layer has them.
func TestDilationNeedsItsHeads(t *testing.T) {
	list, err := ParseList("longformer:8:4:dilation=1/2:heads=5")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckLayers(list, 64, 5, 2); err != nil {
		t.Error(err)
	}
	if err := CheckLayers(list, 64, 4, 2); err == nil {
		t.Error("5 of 4 heads have gaps, and nothing is said")
	}
}
