//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Sizes of adafactor.cu, whose blocks have 256 threads.
const (
	adafactorRows    = 64           // of a tile
	adafactorStretch = 256 * 16 * 8 // bytes of a row per block
	adafactorCols    = 32 * 16      // bytes of a tile's row
	adafactorFixed   = 2 * 8        // bytes of scratch for mean(v) and the rate, in float64
)

// Adafactor implements device.Device.
func (d *Device) Adafactor(p, g, m, v, c *tensor.Tensor, o device.Adafactor) {
	const op = "Adafactor"
	for _, t := range []*tensor.Tensor{p, g, m} {
		if t != nil {
			length(op, "a tensor", t, p.Len())
			dtype(op, "a tensor", t, arithmetic(p))
		}
	}
	dtype(op, "v", v, p.DType())
	if c == nil {
		length(op, "v", v, p.Len())
		d.adafactorWhole(p, g, m, v, o)
		return
	}
	length(op, "v", v, p.Rows())
	length(op, "c", c, p.Cols())
	dtype(op, "c", c, p.DType())
	d.adafactorFactored(p, g, m, v, c, o)
}

// adafactorWhole updates with an unfactored second moment. Scratch holds the sizes of each block, and the rate.
func (d *Device) adafactorWhole(p, g, m, v *tensor.Tensor, o device.Adafactor) {
	blocks := ceilDiv(p.Bytes(), adafactorStretch)
	rate := d.scratch(adafactorFixed + 16*blocks)
	sizes := rate + adafactorFixed

	k := d.begin("adafactor", "measure_whole", p.DType())
	k.pointer(sizes)
	k.tensor(relative(p, o))
	k.tensor(g)
	k.tensor(v)
	k.int(p.Len())
	k.reals(o.Scale, o.Beta2, 1-o.Beta2, o.Eps).launch(blocks, 256, 0)

	d.adafactorRate(rate, sizes, blocks, p, o)

	k = d.begin("adafactor", "update_whole", p.DType())
	k.tensor(p)
	k.tensor(g)
	k.tensor(m)
	k.tensor(v)
	k.int(p.Len())
	k.real(o.Scale)
	k.pointer(rate)
	k.reals(o.Beta1, o.Shrink, floor(o.Cautious)).launch(blocks, 256, 0)
}

// adafactorFactored updates with the means of the second moment over columns, v, and over rows, c. Scratch holds the
// mean of the means, the rate, the tiles' sizes, and their sums over columns and rows.
func (d *Device) adafactorFactored(p, g, m, v, c *tensor.Tensor, o device.Adafactor) {
	rows, cols, size := p.Rows(), p.Cols(), p.DType().Size()
	across, down := ceilDiv(cols*size, adafactorCols), ceilDiv(rows, adafactorRows)
	tiles := across * down
	mean := d.scratch(adafactorFixed + 16*tiles + size*(across*rows+down*cols))
	rate := mean + 8
	sizes := mean + adafactorFixed
	byRow := sizes + driver.Pointer(16*tiles)
	byCol := byRow + driver.Pointer(size*across*rows)

	k := d.begin("adafactor", "squares", p.DType())
	k.tensor(g)
	k.int(rows)
	k.int(cols)
	k.pointer(byRow)
	k.pointer(byCol)
	k.launch(tiles, 256, 0)

	k = d.begin("adafactor", "settle", p.DType())
	k.tensor(v)
	k.tensor(c)
	k.pointer(byRow)
	k.pointer(byCol)
	k.int(rows)
	k.int(cols)
	for _, x := range []float64{o.Beta2, 1 - o.Beta2, o.Scale * o.Scale, o.Eps} {
		k.double(x)
	}
	k.launch(ceilDiv(rows+cols, 256), 256, 0)

	k = d.begin("adafactor", "mean", p.DType())
	k.pointer(mean)
	k.tensor(v)
	k.int(rows)
	k.launch(1, 256, 0)

	k = d.begin("adafactor", "measure", p.DType())
	k.pointer(sizes)
	k.tensor(relative(p, o))
	k.tensor(g)
	k.tensor(v)
	k.tensor(c)
	k.int(rows)
	k.int(cols)
	k.real(o.Scale)
	k.pointer(mean)
	k.launch(tiles, 256, 0)

	d.adafactorRate(rate, sizes, tiles, p, o)

	k = d.begin("adafactor", "update", p.DType())
	for _, t := range []*tensor.Tensor{p, g, m, v, c} {
		k.tensor(t)
	}
	k.int(rows)
	k.int(cols)
	k.real(o.Scale)
	k.pointer(mean)
	k.pointer(rate)
	k.reals(o.Beta1, o.Shrink, floor(o.Cautious)).launch(tiles, 256, 0)
}

// adafactorRate writes the rate of a step from the sizes that n blocks have measured.
func (d *Device) adafactorRate(rate, sizes driver.Pointer, n int, p *tensor.Tensor, o device.Adafactor) {
	k := d.begin("adafactor", "rate", p.DType())
	k.pointer(rate)
	k.pointer(sizes)
	k.int(n)
	k.int(p.Len())
	k.double(o.LR)
	k.double(o.Clip)
	k.double(o.MinScale)
	if o.Absolute {
		k.int(1)
	} else {
		k.int(0)
	}
	k.launch(1, 256, 0)
}

// relative returns the parameter if the rate depends on its size, else nil.
func relative(p *tensor.Tensor, o device.Adafactor) *tensor.Tensor {
	if o.Absolute {
		return nil
	}
	return p
}
