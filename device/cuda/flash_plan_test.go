//go:build cuda && linux

package cuda

import (
	"slices"
	"testing"

	"anneal/device/conformance"

	"pgregory.net/rapid"
)

// For any layout, the plan lists each pair of query and key as often as the layout does, both by units and by tiles.
// Tiles marked as wholly seen are, and the lists of results to combine contain every query and key as often as units
// and tiles do.
func TestAPlanSeesWhatItsLayoutSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, heads := rapid.IntRange(1, 300).Draw(t, "T"), rapid.IntRange(1, 4).Draw(t, "H")
		l := conformance.DrawLayout(t, length, heads)
		p := newPlan(l)
		for h := range heads {
			g := p.graphs[h%len(p.graphs)]
			byUnits, byTiles := make([][]int, l.Len), make([][]int, l.Len)
			for i := range l.Len {
				byUnits[i], byTiles[i] = make([]int, i+1), make([]int, i+1)
			}
			count := func(seen [][]int, u unit, tile, limits int32, whole bool) {
				for n := range u.count {
					i := u.first + n*u.step
					for r, j := range p.tiles[tile] {
						lim := p.limits[limits][r]
						ok := j != nowhere && lim.near < lim.far && i-j >= lim.near &&
							int64(i)-int64(j) < int64(lim.far)
						if ok {
							seen[i][j]++
						} else if whole {
							t.Fatalf("head %d: query %d does not see key %d of a tile that it sees wholly", h, i, j)
						}
					}
				}
			}
			for _, u := range p.units[g.unit : g.unit+g.units] {
				for _, m := range p.ofUnits[u.begin:u.end] {
					count(byUnits, u, m.other, m.limits, m.whole != 0)
				}
			}
			for tile := g.tile; tile < g.tile+g.tiles; tile++ {
				for _, m := range p.ofTiles[p.lists[tile].begin:p.lists[tile].end] {
					count(byTiles, p.units[m.other], tile, m.limits, m.whole != 0)
				}
			}
			want := conformance.Seen(l, h, l.Len)
			for i := range want {
				if !slices.Equal(byUnits[i], want[i]) || !slices.Equal(byTiles[i], want[i]) {
					t.Fatalf("head %d, query %d: %v by units, %v by tiles, want %v",
						h, i, byUnits[i], byTiles[i], want[i])
				}
			}
			for at := range int32(l.Len) {
				slots := func(list int32) []int32 { return p.slots[p.slots[list+at]:p.slots[list+at+1]] }
				for _, s := range slots(g.queries) {
					u := p.units[g.unit+s/tileKeys]
					if u.first+s%tileKeys*u.step != at {
						t.Fatalf("head %d: query %d is not in slot %d", h, at, s)
					}
				}
				for _, s := range slots(g.keys) {
					if p.tiles[g.tile+s/tileKeys][s%tileKeys] != at {
						t.Fatalf("head %d: key %d is not in slot %d", h, at, s)
					}
				}
				if q, k := len(slots(g.queries)), len(slots(g.keys)); q == 0 || k == 0 || q > 1 && !p.overlap ||
					k > 1 && !p.shared {
					t.Fatalf("head %d, position %d: in %d units and %d tiles; overlap %v, shared %v",
						h, at, q, k, p.overlap, p.shared)
				}
			}
		}
	})
}
