package cpu

import (
	"math"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// QuantizeBlocks implements device.Device.
func (d *Device) QuantizeBlocks(dst, src *tensor.Tensor, rows, cols int) {
	const op = "QuantizeBlocks"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	storage(op, "src", src, false)
	j := &d.quantizeBlocks
	*j = quantizeBlocks{
		e: d.f32, dst: dst.BF16(), src: d.f32.view(src), rows: src.Rows(), cols: src.Cols(), high: rows, wide: cols,
		band: ceilDiv(bandRows, rows) * rows, grid: grid(tensor.F8E4M3, 1),
	}
	d.f32.reserve(3 * max(tile, cols))
	d.pool.Run(ceilDiv(j.rows, j.band), j)
}

// bandRows is the least number of rows that a task quantises.
const bandRows = 16

type quantizeBlocks struct {
	e          *engine[float32]
	dst        []tensor.BFloat16
	src        view[float32]
	rows, cols int
	high, wide int // of a block
	band       int // rows of a task, in whole blocks
	grid       vec.Grid[float32]
}

// Do quantises the blocks of a band of rows.
func (j *quantizeBlocks) Do(worker, task int) {
	from, to := span(task, j.band, j.rows)
	width := max(tile/j.wide, 1) * j.wide
	for top := from; top < to; top += j.high {
		for left := 0; left < j.cols; left += width {
			j.quantize(worker, top, min(top+j.high, to), left, min(left+width, j.cols))
		}
	}
}

// quantize rounds the numbers of rows [top, bottom) and columns [left, right), which are blocks beside each other.
func (j *quantizeBlocks) quantize(worker, top, bottom, left, right int) {
	b, n := j.e.buffers(worker, max(tile, j.wide)), right-left
	row, scaled, factors := b.at(0)[:n], b.at(1)[:n], b.at(2)[:ceilDiv(n, j.wide)]
	clear(factors)
	for r := top; r < bottom; r++ {
		j.largest(factors, j.src.load(row, r*j.cols+left, n))
	}
	for i, amax := range factors {
		factors[i] = blockFactor(amax)
	}
	for r := top; r < bottom; r++ {
		at := r*j.cols + left
		out := j.dst[at : at+n]
		x := j.src.load(row, at, n)
		for i, f := range factors {
			for k := i * j.wide; k < min((i+1)*j.wide, n); k++ {
				scaled[k] = x[k] * f
			}
		}
		j.e.vec.Quantize(out, scaled, &j.grid)
		j.e.vec.Unpack(scaled, out)
		for i, f := range factors {
			inverse := 1 / f
			for k := i * j.wide; k < min((i+1)*j.wide, n); k++ {
				scaled[k] *= inverse
			}
		}
		j.e.vec.Pack(out, scaled)
	}
}

// largest raises the largest magnitudes of blocks to those of a row. A NaN persists, because no number is larger.
func (j *quantizeBlocks) largest(amax, row []float32) {
	for i := range amax {
		v := float32(0)
		if j.wide == 1 {
			v = float32(math.Abs(float64(row[i])))
		} else {
			v = j.e.vec.MaxAbs(row[i*j.wide : min((i+1)*j.wide, len(row))])
		}
		if v > amax[i] || v != v {
			amax[i] = v
		}
	}
}

// blockFactor returns the power of two that brings a block's largest magnitude near the top of E4M3, but not above:
// 2^−⌈log₂(amax/448)⌉, where 448 = 0.875·2⁹. A block that is not finite becomes NaN.
func blockFactor(amax float32) float32 {
	if amax == 0 {
		return 1
	}
	if !(amax <= math.MaxFloat32) {
		return float32(math.NaN())
	}
	share, exponent := math.Frexp(float64(amax)) // 0.5 ≤ share < 1
	e := exponent - 9
	if share > 0.875 {
		e++
	}
	return float32(math.Ldexp(1, -max(e, -126)))
}
