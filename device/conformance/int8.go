package conformance

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// int8Blocks compares EncodeInt8 and DecodeInt8 with their definition, bit for bit, on blocks of all kinds: numbers of
// every size, zeros, tiny numbers, and blocks with a NaN or an infinity. A part that starts at a multiple of a stretch
// has the codes that it has in the whole.
func int8Blocks(t *testing.T, d bench, act, wide tensor.DType) {
	if act != wide {
		return
	}
	for _, n := range []int{0, 1, 255, 256, 257, 12*device.Block + 77, 2*device.Stretch + 300} {
		d.memory.Release(0)
		x := d.of(wide, blocksOfAllKinds(n), n)
		blocks := (n + device.Block - 1) / device.Block
		codes, scales := full(d, tensor.U8, n), full(d, wide, blocks)
		decoded := full(d, wide, n)
		rng, first := tensor.NewRNG(70, tensor.PurposeWire, 3), uint64(5)<<48
		d.EncodeInt8(codes, scales, x, rng, first)
		d.DecodeInt8(decoded, codes, scales)
		d.wait(t)
		wantCodes, wantScales, want := int8Of(x, rng, first)
		sameNumbers(t, "scales", scales, wantScales)
		if !slices.Equal(codes.Raw(), wantCodes) {
			t.Fatalf("%v: codes of %d elements differ from their definition", wide, n)
		}
		sameNumbers(t, "decoded", decoded, want)
		if n > device.Stretch {
			part := x.Slice(device.Stretch, n)
			codes, scales := full(d, tensor.U8, part.Len()), full(d, wide, blocks-device.Stretch/device.Block)
			d.EncodeInt8(codes, scales, &part, rng, first+device.Stretch/8)
			d.wait(t)
			if !slices.Equal(codes.Raw(), wantCodes[device.Stretch:]) {
				t.Fatalf("%v: the codes of a part are not those of the whole", wide)
			}
		}
	}
}

// int8Of returns, by the definition, the codes, the scales, and the numbers that they stand for.
func int8Of(x *tensor.Tensor, rng tensor.RNG, first uint64) (codes []byte, scales, decoded []float64) {
	of := func(v float64) float64 { return v }
	if x.DType() == tensor.F32 {
		of = func(v float64) float64 { return float64(float32(v)) }
	}
	for from := 0; from < x.Len(); from += device.Block {
		to, scale := min(from+device.Block, x.Len()), 0.0
		for i := from; i < to; i++ {
			scale = max(scale, math.Abs(x.Float64(i)))
		}
		if scale = of(scale / 127); scale-scale != 0 {
			scale = nan
		} else if scale < 0x1p-110 {
			scale = math.Copysign(0, -1)
		}
		scales = append(scales, scale)
		for i := from; i < to; i++ {
			code := int8(0)
			if scale > 0 {
				units := int32(math.RoundToEven(of(math.Abs(x.Float64(i)) * of(65536/scale))))
				word := rng.Block(first + uint64(i/128*16+i%16))[i%128/32] >> (i % 32 / 16 * 16) & 0xffff
				code = int8(min((units+int32(word))>>16, 127))
			}
			if math.Signbit(x.Float64(i)) {
				code = -code
			}
			codes, decoded = append(codes, byte(code)), append(decoded, of(float64(code)*scale))
		}
	}
	return codes, scales, decoded
}

// blocksOfAllKinds returns n numbers, whose blocks differ in kind.
func blocksOfAllKinds(n int) []float64 {
	x := normal(n, 71)
	for i := range x {
		switch block := i / device.Block; block % 10 {
		case 1:
			x[i] = 0
		case 2:
			x[i] = math.Copysign(0, -1)
		case 3:
			x[i] *= 1e-40
		case 4:
			x[i] *= 1e-30
		case 5:
			x[i] *= 1e37
		case 6:
			if i%device.Block == 17 {
				x[i] = nan
			}
		case 7:
			if i%device.Block == 18 {
				x[i] = -inf
			}
		case 8:
			if i%3 > 0 {
				x[i] = 0
			}
		}
	}
	return x
}

// full returns a tensor whose bytes are 255, for results.
func full(d bench, dt tensor.DType, n int) *tensor.Tensor {
	t := d.memory.New(dt, n)
	for i := range t.Raw() {
		t.Raw()[i] = 0xff
	}
	return &t
}

// int8IsUnbiased checks that the mean of many decodings is close to the number.
func int8IsUnbiased(t *testing.T, d bench, act, wide tensor.DType) {
	if act != wide {
		return
	}
	const n, rounds = device.Block, 400
	x := d.of(wide, normal(n, 72), n)
	codes, scales, decoded := full(d, tensor.U8, n), full(d, wide, 1), full(d, wide, n)
	errors, squares := 0.0, 0.0
	mean := make([]float64, n)
	for step := range uint32(rounds) {
		d.EncodeInt8(codes, scales, x, tensor.NewRNG(73, tensor.PurposeWire, step), 0)
		d.DecodeInt8(decoded, codes, scales)
		d.wait(t)
		for i := range mean {
			mean[i] += decoded.Float64(i) / rounds
		}
	}
	scale := scales.Float64(0)
	for i, m := range mean {
		e := (m - x.Float64(i)) / scale
		errors, squares = errors+e/n, squares+e*e/n
	}
	// One rounding has a variance of at most 1/4 of a scale, 1/6 on average over numbers.
	if math.Abs(errors) > 5*math.Sqrt(1./6/rounds/n) || squares > 1.5/6/rounds {
		t.Errorf("%v: the mean of %d decodings is off by %.3g scales on average, by %.3g in the mean square",
			wide, rounds, errors, squares)
	}
}
