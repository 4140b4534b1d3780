package attention

import (
	"fmt"
	"math"

	"anneal/device"
)

// Panel is a picture of what one head looks at: queries from the top down, keys from left to right.
type Panel struct {
	Title, Caption string
	Heads          string         // that look at the same
	Layout         *device.Layout // nil is full attention
	Head, Length   int
}

// axes says what the picture's directions are.
func (p Panel) axes() string {
	return fmt.Sprintf("%s: keys 0 … %d →, queries ↓", p.Heads, p.Length-1)
}

// raster returns for cells × cells parts of the square which share of the causal pairs in each is seen: 0 … 1, and −1 above the
// diagonal, where there are none. Row of queries first.
func (p Panel) raster(cells int) [][]float64 {
	edges := make([]int, cells+1) // of the cells, in tokens
	cellOf := make([]int, p.Length)
	for c := range cells {
		edges[c+1] = (c + 1) * p.Length / cells
		for i := edges[c]; i < edges[c+1]; i++ {
			cellOf[i] = c
		}
	}
	share := make([][]float64, cells)
	for y := range share {
		share[y] = make([]float64, cells)
	}
	count := func(i int, r device.KeyRange) {
		from, to := seen(r, i)
		for from < to {
			x := cellOf[r.First+from*r.Step]
			next := min(below(r.Strip, edges[x+1]), to)
			share[cellOf[i]][x] += float64(next - from)
			from = next
		}
	}
	if p.Layout == nil {
		for i := range p.Length {
			count(i, span(0, i+1))
		}
	} else {
		for _, b := range p.Layout.Of(p.Head).Blocks {
			q := shorten(b.Queries, p.Length)
			for k := range q.Count {
				for _, r := range b.Keys {
					count(q.First+k*q.Step, r)
				}
			}
		}
	}
	for y := range cells {
		for x := range cells {
			switch high := float64(edges[y+1] - edges[y]); {
			case x > y:
				share[y][x] = -1
			case x == y:
				share[y][x] = min(share[y][x]/(high*(high+1)/2), 1)
			default:
				share[y][x] = min(share[y][x]/(high*float64(edges[x+1]-edges[x])), 1)
			}
		}
	}
	return share
}

// darkness is how dark a cell is drawn, 0 … 1: eyes see a cube root (CIE 1976), and few pairs should still be seen.
func darkness(share float64) float64 { return math.Cbrt(max(share, 0)) }
