package tensor

// E4M3 is the 8-bit float of forward tensors: 4 exponent bits, 3 mantissa bits, no infinity, largest value 448
// (the "e4m3fn" format of Micikevicius et al. 2022, arXiv 2209.05433).
type E4M3 uint8

// Float32 widens b; the conversion is exact.
func (b E4M3) Float32() float32 { return float32(unpackSmall(uint32(b), 4, 3, false)) }

// E4M3FromFloat32 rounds f, ties to even; beyond 464 the result is NaN. Scaled quantisers clamp to ±448 first.
func E4M3FromFloat32(f float32) E4M3 { return E4M3(packSmall(f, 4, 3, false)) }

// E5M2 is the 8-bit float of gradients: 5 exponent bits, 2 mantissa bits, IEEE infinities, largest value 57344.
type E5M2 uint8

// Float32 widens b; the conversion is exact.
func (b E5M2) Float32() float32 { return float32(unpackSmall(uint32(b), 5, 2, true)) }

// E5M2FromFloat32 rounds f, ties to even; from 61440 on the result is infinite.
func E5M2FromFloat32(f float32) E5M2 { return E5M2(packSmall(f, 5, 2, true)) }
