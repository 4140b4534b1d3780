package attention

import (
	"fmt"
	"math"

	"anneal/device"
)

// Panel is a picture of the keys that one head sees: queries from top to bottom, keys from left to right.
type Panel struct {
	Title, Caption string
	Heads          string         // heads with the same graph
	Layout         *device.Layout // nil is full attention
	Head, Length   int
}

// axes labels the directions of the picture.
func (p Panel) axes() string {
	return fmt.Sprintf("%s: keys 0 … %d →, queries ↓", p.Heads, p.Length-1)
}

// raster divides the square into cells × cells parts and returns the share of the causal pairs that are seen in each:
// 0 … 1, or −1 above the diagonal, where there are none. Queries are the first index.
func (p Panel) raster(cells int) [][]float64 {
	edges := make([]int, cells+1) // boundaries of the cells, in tokens
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

// darkness returns the darkness of a cell, 0 … 1. It is a cube root, like human perception (CIE 1976), so that few
// pairs are still visible.
func darkness(share float64) float64 { return math.Cbrt(max(share, 0)) }
