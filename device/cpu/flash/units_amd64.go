package flash

import (
	"math"
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

// amxShapes is the tile configuration: eight tiles of 16 rows of 64 bytes.
//
//lint:ignore U1000 the assembly names it
var amxShapes = func() (c [64]byte) {
	c[0] = 1
	for t := range 8 {
		c[16+2*t], c[48+t] = 64, 16
	}
	return c
}()

// amxConstants is read by the assembly; see gen/tiles.go.
//
//lint:ignore U1000 the assembly names it
var amxConstants = [...]uint32{
	math.Float32bits(float32(math.Inf(-1))), 0x8000,
	math.Float32bits(0x1.c54174p-13), math.Float32bits(0x1.46d64ep-10), math.Float32bits(0x1.3d0b92p-7),
	math.Float32bits(0x1.c68912p-5), math.Float32bits(0x1.ebfd58p-3), math.Float32bits(0x1.62e42cp-1),
	math.Float32bits(0x1.b7f73p-7), math.Float32bits(0x1.abf868p-5), math.Float32bits(0x1.ee2450p-3),
	math.Float32bits(0x1.62d6c6p-1),
	math.Float32bits(1),
}

// Values of MXCSR: all exceptions masked, round to nearest; with and without flush-to-zero and denormals-are-zero.
//
//lint:ignore U1000 the assembly names them
var flushSubnormals, keepSubnormals uint32 = 0x9fc0, 0x1f80

// onUnits adds the primitives on matrix units to those for pairs, if the tier has matrix units.
func onUnits(k kernels[float32], tier isa.Tier) kernels[float32] {
	if tier < isa.AMX {
		return k
	}
	k.tileM = 32
	k.attend = func(t forwardTile[float32], pieces []piece, skip, steps, size int, scale float32) {
		blocks := (size + 15) / 16
		if len(pieces) == 0 {
			return
		}
		for i := range pieces {
			p := &pieces[i]
			_, _, _, _ = t.k[(p.lo+p.rows-1)*t.led/2+skip+16*steps-1], t.vt[blocks*512-1],
				t.qt[p.q/4+skip*32+steps*512-1], t.o[p.o/4+blocks*512-1]
			_, _, _ = t.m[p.stat/4+31], t.l[p.stat/4+31], t.s[p.rows*32-1]
		}
		attendAMX(&t.k[skip], 2*t.led, &t.vt[0], &t.qt[skip*32], &t.o[0], &t.m[0], &t.l[0], &t.s[0],
			unsafe.SliceData(pieces), len(pieces), steps, blocks, bits(scale))
	}
	k.descend = func(t backwardTile[float32], dk, dv []float32, pieces []unitPiece, skip, steps, size int,
		scale float32) {
		columns, covered, square := (size+31)/32, 0, 64*32
		for i := range pieces {
			p := &pieces[i]
			for h := range p.halves {
				if p.halves[h].count > 0 {
					covered |= 1 << h
					last := (32*h+31)*t.ld + 32*columns - 1
					_, _ = dk[last], dv[last]
				}
			}
			for n := range p.panels {
				if y := &p.panels[n]; y.rows > 0 {
					_, _ = t.k[(y.lo+y.rows-1)*t.led/2+skip+16*steps-1], t.v[(y.lo+y.rows-1)*t.ld/2+16*columns-1]
				}
			}
			_, _, _ = t.q[p.q/4+32*t.led-1], t.do[p.do/4+32*t.ld-1], t.dq[p.dq/4+64*t.ld-1]
			_, _ = t.lse[p.stat/4+63], t.delta[p.stat/4+63]
		}
		_, _, _, _ = t.kt[32*t.ld-1], t.s[(1+len(pieces))*square-1], t.ds[(1+len(pieces))*square-1], t.dsd[square-1]
		descendAMX(&t.k[skip], &t.kt[0], &t.v[0], &t.qt[skip*32], &t.qd[t.led-t.ld], &t.dot[0], &t.dod[0], &dk[0],
			&dv[0], &t.dq[0], &t.lse[0], &t.delta[0], &t.s[0], &t.ds[0], &t.s[square], &t.ds[square], &t.dsd[0],
			4*t.ld, 4*t.led, unsafe.SliceData(pieces), len(pieces), len(pieces), covered, steps, columns, bits(scale))
	}
	k.lower = func(dst []tensor.BFloat16, stride int, src, f []float32, size int) {
		groups := (size + 31) / 32
		_, _, _ = dst[31*stride+32*groups-1], src[32*32*groups-1], f[31]
		lowerAMX((*uint16)(unsafe.Pointer(&dst[0])), 2*stride, &src[0], &f[0], groups)
	}
	return k
}

// zipRows is read by the assembly: the permutation of 2·16 elements, one row and then the next, to words.
//
//lint:ignore U1000 the assembly names it
var zipRows = func() (order [32]uint16) {
	for i := range order {
		order[i] = uint16(i/2 + i%2*16)
	}
	return order
}()

// upperHalves is read by the assembly: it selects the upper halves of 32 words from 2·32 elements.
//
//lint:ignore U1000 the assembly names it
var upperHalves = func() (order [32]uint16) {
	for i := range order {
		order[i] = uint16(2*i + 1)
	}
	return order
}()
