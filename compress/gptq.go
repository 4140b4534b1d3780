package compress

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// damping is the share of the mean of the diagonal that is added to the diagonal, as in the original.
const damping = 0.01

// errSingular means that the inputs of a matrix leave its products undetermined even with damping.
var errSingular = errors.New("compress: the inputs of a matrix are not finite, or all zero")

// GPTQ rounds the weights of w [rows, cols] to the grid so that the products with the inputs change little (Frantar et
// al. 2022, arXiv 2210.17323). h [cols, cols] is Σ x·xᵀ over inputs x; it is overwritten. It rounds one column after
// the other; the later columns compensate for the error, as far as the inputs allow:
//
//	q = round(w_i);  w_j ← w_j − (w_i − q)·U_ij / U_ii  for j > i,  with Uᵀ·U = (h + damping)⁻¹
//
// The scale of a group follows from its weights when its first column is reached. Weights that are 0 stay 0, so that
// pruned weights stay pruned. Rows are independent of each other.
func (g Grid) GPTQ(w []float32, cols int, h []float64) error {
	g.check()
	if checkRows(len(w), cols); len(h) != cols*cols {
		return fmt.Errorf("compress: h has %d numbers, but rows of %d need %d", len(h), cols, cols*cols)
	}
	u, err := upper(h, cols)
	if err != nil {
		return err
	}
	rows := len(w) / cols
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), rows) {
		wait.Go(func() {
			row, zero := make([]float64, 0, cols), make([]bool, cols)
			for r := int(next.Add(1) - 1); r < rows; r = int(next.Add(1) - 1) {
				own := w[r*cols : (r+1)*cols]
				row = widened(row[:0], own)
				for i, x := range row {
					zero[i] = x == 0
				}
				g.row(row, u, zero)
				for i, x := range row {
					own[i] = float32(x)
				}
			}
		})
	}
	wait.Wait()
	return nil
}

// row rounds a row by U, except the weights that must stay 0.
func (g Grid) row(w, u []float64, zero []bool) {
	cols, scale := len(w), 0.0
	for i, x := range w {
		if i%g.Group == 0 {
			scale = g.scale(w[i:min(i+g.Group, cols)])
		}
		if w[i] = g.round(x, scale); zero[i] {
			w[i] = 0
		}
		line := u[i*cols : (i+1)*cols]
		miss := (x - w[i]) / line[i]
		for j := i + 1; j < cols; j++ {
			w[j] -= miss * line[j]
		}
	}
}

// upper returns U, upper triangular, with Uᵀ·U = (h + damping)⁻¹, in the memory of h. U is the inverse of M, the factor
// of h = M·Mᵀ that Cholesky's method finds from the last row and column on.
func upper(h []float64, n int) ([]float64, error) {
	mean := 0.0
	for i := range n {
		mean += h[i*n+i] / float64(n)
	}
	if !(mean > 0) || math.IsInf(mean, 0) {
		return nil, errSingular
	}
	for i := range n {
		h[i*n+i] += damping * mean
	}
	for j := n - 1; j >= 0; j-- {
		d := h[j*n+j]
		for k := j + 1; k < n; k++ {
			d -= h[j*n+k] * h[j*n+k]
		}
		if !(d > 0) {
			return nil, errSingular
		}
		d = math.Sqrt(d)
		h[j*n+j] = d
		for i := range j {
			s := h[i*n+j]
			for k := j + 1; k < n; k++ {
				s -= h[i*n+k] * h[j*n+k]
			}
			h[i*n+j] = s / d
		}
	}
	// In place: row i of the inverse needs the rows of the inverse below it and row i of M.
	for i := n - 1; i >= 0; i-- {
		d := 1 / h[i*n+i]
		row := make([]float64, n)
		for k := i + 1; k < n; k++ {
			m := h[i*n+k]
			for j := k; j < n; j++ {
				row[j] -= d * m * h[k*n+j]
			}
		}
		row[i] = d
		copy(h[i*n+i:(i+1)*n], row[i:])
		for j := range i {
			h[i*n+j] = 0
		}
	}
	return h, nil
}
