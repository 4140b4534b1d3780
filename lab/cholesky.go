package lab

import "math"

// cholesky replaces a symmetric positive definite matrix by its factor L with LLᵀ = a. The rows hold the lower
// triangle. It reports whether the matrix was positive definite.
func cholesky(a [][]float64) bool {
	for i, row := range a {
		for j := range row {
			sum := row[j] - dot(row[:j], a[j][:j])
			if j < i {
				row[j] = sum / a[j][j]
				continue
			}
			if !(sum > 0) {
				return false
			}
			row[i] = math.Sqrt(sum)
		}
	}
	return true
}

// choleskySolve returns the solution x of LLᵀx = b.
func choleskySolve(l [][]float64, b []float64) []float64 {
	x := make([]float64, len(b))
	for i := range x { // Lz = b
		x[i] = (b[i] - dot(l[i][:i], x[:i])) / l[i][i]
	}
	for i := len(x) - 1; i >= 0; i-- { // Lᵀx = z
		x[i] /= l[i][i]
		for j := range i {
			x[j] -= l[i][j] * x[i]
		}
	}
	return x
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
