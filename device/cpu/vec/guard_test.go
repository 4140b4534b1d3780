//go:build unix

package vec

import (
	"testing"
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"

	"golang.org/x/sys/unix"
)

// fenced returns n elements whose end (or start) touches an unreadable page.
func fenced[E any](t *testing.T, n int, atEnd bool) []E {
	const page = 4096
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	for _, fence := range [][]byte{mem[:page], mem[2*page:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	from := page
	if atEnd {
		from = 2*page - n*int(unsafe.Sizeof(*new(E)))
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&mem[from])), n)
}

// A read or write outside the slices would kill the test with a fault.
func TestNothingOutsideTheSlicesIsTouched(t *testing.T) {
	codes := []*Code[float32]{NewCode[float32](true), NewCode[float32](false)}
	for _, atEnd := range []bool{true, false} {
		var s [5][]float32
		for i := range s {
			s[i] = fenced[float32](t, 70, atEnd)
		}
		var h [5][]tensor.BFloat16
		for i := range h {
			h[i] = fenced[tensor.BFloat16](t, 70, atEnd)
		}
		bytes := fenced[byte](t, 70, atEnd)
		for _, tier := range isa.Tiers() {
			v := Float32(tier)
			for n := range 71 {
				from := 0
				if atEnd {
					from = 70 - n
				}
				a, b, c, d, e := s[0][from:from+n], s[1][from:from+n], s[2][from:from+n], s[3][from:from+n],
					s[4][from:from+n]
				v.Add(a, b)
				v.Axpy(a, b, 2)
				v.Scale(a, b, 2)
				v.Mul(a, b, c)
				v.MulAdd(a, b, c)
				v.Mix(a, b, c, 2, 3)
				v.Dot(a, b)
				v.Max(a)
				v.Sum(a)
				v.SumSq(a)
				v.ExpSum(a, b, 1)
				v.ELU1(a, b, c)
				v.Rotate(a, b, c, d)
				v.RotatePairs(a[n%2:], b[(n+1)/2:], c[(n+1)/2:])
				v.SwiGLU(a, b, c)
				v.SwiGLUGrad(a, b, c, d, e, e)
				v.GeGLU(a, b, c)
				v.GeGLUGrad(a, b, c, d, e, e)
				v.ReLUSquared(a, b)
				v.ReLUSquaredGrad(a, b, c)
				v.AdamW(a, b, c, d, &AdamW[float32]{Eps: 1})
				v.Adam(a, b, c, d, &AdamW[float32]{Eps: 1})
				v.Momentum(a, b, c, &Momentum[float32]{})
				v.Lion(a, b, c, &Lion[float32]{})
				v.AdEMAMix(a, b, c, d, e, &AdEMAMix[float32]{Eps: 1})
				v.Descend(a, b, &Descend[float32]{})
				v.Whiten(a, b, c, &Whiten[float32]{})
				v.Sophia(a, b, c, d, &Sophia[float32]{Tiny: 1, One: 1, MinusOne: -1})
				v.MeanSquare(a, b, 1, 1)
				row := func(i int) []tensor.BFloat16 { return h[i][from : from+n] }
				v.Pack(row(0), a)
				v.Unpack(a, row(0))
				f16 := unsafe.Slice((*tensor.Float16)(unsafe.Pointer(unsafe.SliceData(row(0)))), n)
				v.PackF16(f16, a)
				v.UnpackF16(a, f16)
				v.MaxAbs(a)
				v.PackStochastic(row(0), a, unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n))
				raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(row(0)))), n)
				v.PackInt8(raw, a, unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n), 1)
				v.UnpackInt8(a, raw, 1)
				for _, c := range codes {
					v.Encode(bytes[from:from+n], a, c, 1)
					v.Decode(a, bytes[from:from+n], c, 1)
				}
				v.Quantize(row(0), a, &Grid[float32]{Scale: 1, Top: 448, Least: 0x1p-6, Magic: 0x1.8p20})
				if v.Narrow == nil || n%v.Narrow.Multiple != 0 {
					continue
				}
				v.Narrow.SwiGLU(row(0), row(1), row(2))
				v.Narrow.SwiGLUGrad(row(0), row(1), row(2), row(3), row(4), row(4))
				v.Narrow.GeGLU(row(0), row(1), row(2))
				v.Narrow.GeGLUGrad(row(0), row(1), row(2), row(3), row(4), row(4))
				v.Narrow.ReLUSquared(row(0), row(1))
				v.Narrow.ReLUSquaredGrad(row(0), row(1), row(2))
				v.Narrow.Normalise(row(0), row(1), a, b, 2)
				v.Narrow.Mul(row(0), row(1), a)
				v.Narrow.NormDot(a, row(0), row(1), b)
				v.Narrow.NormGrad(a, row(0), row(1), b, 2, 3)
				if half := n / 4; n%4 == 0 && half%v.Narrow.Multiple == 0 {
					v.Narrow.Rotate(a[:half], b, row(0), row(0)[half:], 2)
					v.Narrow.RotatePairs(a[:half], b, row(0), 2)
				}
			}
		}
	}
}
