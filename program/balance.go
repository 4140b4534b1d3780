package program

import "math"

// Balance cuts layers into consecutive parts so that the most expensive part costs as little as it can, and returns
// how many layers each part has. Costs are by layer, in any unit, and not negative; include the embedding in the cost
// of the first layer and the head in that of the last. Among equally good cuts Balance takes the most even one, by the
// sum of squared costs, and then the one with more layers in the first parts. Every part gets a layer: parts are 1 …
// len(costs).
func Balance(costs []float64, parts int) []int {
	n := len(costs)
	sum := make([]float64, n+1) // of the first layers
	for i, c := range costs {
		sum[i+1] = sum[i] + c
	}
	// best[p][i] is the best cut of the layers from i on into p parts, and first[p][i] the layers of its first part.
	best, first := make([][]cut, parts+1), make([][]int, parts+1)
	for p := range best {
		best[p], first[p] = make([]cut, n+1), make([]int, n+1)
		for i := range best[p] {
			best[p][i] = cut{math.Inf(1), math.Inf(1)}
		}
	}
	best[0][n] = cut{}
	for p := 1; p <= parts; p++ {
		for i := range n - p + 1 {
			for k := n - i - p + 1; k >= 1; k-- { // more layers first, so that a tie leaves them there
				c, rest := sum[i+k]-sum[i], best[p-1][i+k]
				if x := (cut{max(c, rest.most), c*c + rest.squares}); x.less(best[p][i]) {
					best[p][i], first[p][i] = x, k
				}
			}
		}
	}
	layers := make([]int, parts)
	for i, at := 0, 0; i < parts; i++ {
		layers[i] = first[parts-i][at]
		at += layers[i]
	}
	return layers
}

// A cut holds the costs by which ways to cut layers are compared.
type cut struct{ most, squares float64 }

func (c cut) less(d cut) bool {
	return c.most < d.most || c.most == d.most && c.squares < d.squares
}
