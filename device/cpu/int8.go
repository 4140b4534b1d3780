package cpu

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// EncodeInt8 implements device.Device.
func (d *Device) EncodeInt8(codes, scales, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	checkInt8("EncodeInt8", src, codes, scales)
	if reference(src) {
		d.f64.runEncodeInt8(d, codes, scales, src, rng, first)
	} else {
		d.f32.runEncodeInt8(d, codes, scales, src, rng, first)
	}
}

// DecodeInt8 implements device.Device.
func (d *Device) DecodeInt8(dst, codes, scales *tensor.Tensor) {
	checkInt8("DecodeInt8", dst, codes, scales)
	if reference(dst) {
		d.f64.runDecodeInt8(dst, codes, scales)
	} else {
		d.f32.runDecodeInt8(dst, codes, scales)
	}
}

func checkInt8(op string, numbers, codes, scales *tensor.Tensor) {
	wide(op, "the numbers", numbers, reference(numbers))
	length(op, "codes", codes, numbers.Len())
	dtype(op, "codes", codes, tensor.U8)
	length(op, "scales", scales, ceilDiv(numbers.Len(), device.Block))
	wide(op, "scales", scales, reference(numbers))
}

type encodeInt8[T vec.Float] struct {
	e           *engine[T]
	codes       []byte
	scales, src []T
	bits        *vec.Table[float32] // draws the random numbers
	rng         tensor.RNG
	first       uint64
	workers     []randomRow
}

func (e *engine[T]) runEncodeInt8(d *Device, codes, scales, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	j := &e.encodeInt8
	*j = encodeInt8[T]{
		e: e, codes: codes.Raw(), scales: e.view(scales).native, src: e.view(src).native,
		bits: &d.f32.vec, rng: rng, first: first, workers: d.randomRows(),
	}
	e.pool.Run(ceilDiv(len(j.src), chunk), j)
}

// Do encodes the blocks of one stretch, whose random numbers are drawn a tile at a time.
func (j *encodeInt8[T]) Do(worker, task int) {
	from, to := span(task, chunk, len(j.src))
	for i := from; i < to; i += tile {
		end := min(i+tile, to)
		random := j.workers[worker].draw(j.bits, end-i, j.rng, j.first+uint64(i/8))
		for b := i; b < end; b += device.Block {
			j.block(b, min(b+device.Block, end), random[b-i:])
		}
	}
}

// leastInt8 is the smallest scale: 65536 over a smaller one might not be finite.
const leastInt8 = 0x1p-110

func (j *encodeInt8[T]) block(from, to int, random []uint32) {
	codes, src, scale := j.codes[from:to], j.src[from:to], &j.scales[from/device.Block]
	switch *scale = j.e.vec.MaxAbs(src) / 127; {
	case *scale-*scale != 0:
		*scale = T(math.NaN())
		clear(codes)
	case *scale < leastInt8:
		*scale = T(math.Copysign(0, -1))
		clear(codes)
	default:
		j.e.vec.PackInt8(codes, src, random, 65536 / *scale)
	}
}

type decodeInt8[T vec.Float] struct {
	e           *engine[T]
	dst, scales []T
	codes       []byte
}

func (e *engine[T]) runDecodeInt8(dst, codes, scales *tensor.Tensor) {
	j := &e.decodeInt8
	*j = decodeInt8[T]{e: e, dst: e.view(dst).native, scales: e.view(scales).native, codes: codes.Raw()}
	e.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

// Do decodes the blocks of one stretch.
func (j *decodeInt8[T]) Do(_, task int) {
	from, to := span(task, chunk, len(j.dst))
	for i := from; i < to; i += device.Block {
		end := min(i+device.Block, to)
		j.e.vec.UnpackInt8(j.dst[i:end], j.codes[i:end], j.scales[i/device.Block])
	}
}
