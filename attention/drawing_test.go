package attention

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Every pair lies in one cell of the raster: shares times the cells' causal pairs sum to the count.
func TestRasterHoldsEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPattern(t)
		if _, overlap := p.(LongNet); overlap {
			t.Skip("shares of pairs that count twice end at 1")
		}
		length := rapid.IntRange(1, 400).Draw(t, "length")
		cells := rapid.IntRange(1, length).Draw(t, "cells")
		l, err := Compile(p, length, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		edge := func(c int) float64 { return float64(c * length / cells) }
		for head := range 2 {
			var sum, want float64
			for y, row := range (Panel{Layout: l, Head: head, Length: length}).raster(cells) {
				for x, share := range row[:y+1] {
					if share < 0 || share > 1 {
						t.Fatalf("%s, %d tokens in %d cells: a share of %g at %d, %d", p, length, cells, share, y, x)
					}
					high, wide := edge(y+1)-edge(y), edge(x+1)-edge(x)
					if x == y {
						wide = (high + 1) / 2
					}
					sum += share * high * wide
				}
			}
			for _, row := range matrix(l, length, head) {
				for _, n := range row {
					want += float64(n)
				}
			}
			if math.Abs(sum-want) > 1e-6*want {
				t.Fatalf("%s, %d tokens in %d cells: the raster holds %g pairs, the layout %g",
					p, length, cells, sum, want)
			}
		}
	})
}

// In a short row a dot is a pair.
func TestTerminalDrawsThePairsOfAShortRow(t *testing.T) {
	d, err := Describe("window:3,longnet:4/1:8/4", 16, 2, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Terminal(&b, []Panel{d[0].Panel(0), d[1].Panel(1)}, 100); err != nil {
		t.Fatal(err)
	}
	const want = `window:3                                         longnet:4/1:8/4
┌──────────────────────────────────────────────┐ ┌──────────────────────────────────────────────┐
│⢷⣄                                            │ │⣷⣄                                            │
│ ⠙⢷⣄                                          │ │⠐ ⣷⣄                                          │
│   ⠙⢷⣄                                        │ │    ⣷⣄                                        │
│     ⠙⢷⣄                                      │ │    ⠐ ⣷⣄                                      │
└──────────────────────────────────────────────┘ └──────────────────────────────────────────────┘
all heads: keys 0 … 15 →, queries ↓              head 1: keys 0 … 15 →, queries ↓
density 33.1 %, mean 2.8 keys, most 3            density 33.8 %, mean 2.9 keys, most 4

`
	if b.String() != want {
		t.Errorf("drawn\n%swant\n%s", b.String(), want)
	}
}

// A caption is whole in the widest panel, even of the longest row.
func TestCaptionsFitTheirPanel(t *testing.T) {
	d, err := Describe("full", 1<<20, 1, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if text := d[0].Panel(0).Caption; utf8.RuneCountInString(text) > panelColumns+2 {
		t.Errorf("%q has %d characters, a panel %d", text, utf8.RuneCountInString(text), panelColumns+2)
	}
}

// Whatever the width, no line is wider than it, from 18 characters on.
func TestTerminalKeepsToItsWidth(t *testing.T) {
	d, err := Describe("bigbird,strided,full", 5000, 4, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var panels []Panel
	for _, d := range d {
		panels = append(panels, d.Panels(2)...)
	}
	if len(panels) != 5 {
		t.Errorf("%d panels, want two of bigbird, two of strided, one of full", len(panels))
	}
	for _, columns := range []int{18, 40, 80, 100, 120, 200} {
		var b strings.Builder
		if err := Terminal(&b, panels, columns); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > columns {
				t.Fatalf("%d columns: a line of %d: %s", columns, n, line)
			}
		}
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	d, err := Describe("full,fixed:64:8,longnet", 4096, 8, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var panels []Panel
	for _, d := range d {
		panels = append(panels, d.Panels(3)...)
	}
	panels[0].Title = `<&"`
	var b strings.Builder
	if err := SVG(&b, panels); err != nil {
		t.Fatal(err)
	}
	groups := 0
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "g" {
			groups++
		}
	}
	if groups != 2*len(panels) {
		t.Errorf("%d groups for %d panels", groups, len(panels))
	}
}
