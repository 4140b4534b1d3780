package machine

// fitCosts returns the costs c ≥ 0 that minimise Σ (1 − row·c)², by descending one coordinate at a time.
func fitCosts(rows [][]float64) []float64 {
	n := len(rows[0])
	costs, scale := make([]float64, n), make([]float64, n)
	for j := range n { // features differ by many powers of ten
		for _, r := range rows {
			scale[j] += r[j] * r[j]
		}
	}
	rest := make([]float64, len(rows)) // 1 − row·c
	for i := range rest {
		rest[i] = 1
	}
	for range descents {
		for j := range n {
			if scale[j] == 0 {
				continue
			}
			slope := 0.0
			for i, r := range rows {
				slope += r[j] * rest[i]
			}
			next := max(0, costs[j]+slope/scale[j])
			for i, r := range rows {
				rest[i] -= r[j] * (next - costs[j])
			}
			costs[j] = next
		}
	}
	return costs
}

// descents is enough for five costs, even if some features are almost proportional.
const descents = 2000
