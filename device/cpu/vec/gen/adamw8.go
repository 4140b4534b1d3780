package main

import "anneal/internal/asmgen"

// Offsets in vec.AdamW8[float32], after the constants of AdamW.
const (
	adamW8Signed   = 40
	adamW8Unsigned = 48
	adamW8Moments  = 56
	adamW8V        = 4 * 256 // in Moments
)

const adamW8Ahead = 512 // elements that are prefetched ahead

// adamW8 writes AdamW on 8-bit moments for AVX-512 and NEON: one pass decodes a block's moments and updates, one
// encodes the first moment, one the second. Between them the moments stay in the first-level cache. All passes
// prefetch two blocks ahead.
func (s *isa) adamW8(f *asmgen.File) {
	if !s.wide() && !s.neon() {
		return
	}
	k := s.update(f, "adamW8", "is one step of AdamW on 8-bit moments, for whole blocks.", "AdamW8",
		[]string{"p", "g", "m:u8", "v:u8", "mTop", "vTop"}, 10, "")
	if k.neon() {
		k.neonAdamW8()
		return
	}
	const g, m, v, t, p, index = 0, 1, 2, 3, 4, 5
	const mTop, vTop, mMax, vMax, magnitude = 7, 8, 9, 11, 13 // the registers after the maxima are free
	k.Arg("mTop_len", "CX")                                   // blocks
	k.I("MOVQ %d(R11), R12", adamW8Signed)
	k.I("MOVQ %d(R11), R13", adamW8Unsigned)

	// pass loops over the vectors of a block.
	pass := func(body func()) {
		again := k.NewLabel("pass")
		k.I("XORQ AX, AX")
		k.Label(again)
		body()
		k.I("ADDQ $16, AX")
		k.I("CMPQ AX, $256")
		k.I("JLT %s", again)
	}
	fetch := func(slice string, size int) {
		k.I("PREFETCHT0 %d(%s)(AX*%d)", size*adamW8Ahead, k.base[slice], size)
	}
	block, done := k.NewLabel("block"), k.NewLabel("done")
	k.Label(block)
	k.I("TESTQ CX, CX")
	k.I("JZ %s", done)

	k.I("MOVQ %d(R11), R10", adamW8Moments)
	k.I("VBROADCASTSS (%s), Z%d", k.base["mTop"], mTop)
	k.I("VBROADCASTSS (%s), Z%d", k.base["vTop"], vTop)
	k.fillFar(magnitudeBits, magnitude)
	k.op("VPXORD", mMax, mMax, mMax)
	k.op("VPXORD", vMax, vMax, vMax)
	pass(func() {
		fetch("p", 4)
		k.decode("m", 0, "R12", mTop, index, m)
		k.decode("v", 0, "R13", vTop, index, v)
		k.moments(0, g, m, v, t, p, magnitude, mMax, vMax, func(r, offset int) {
			k.I("VMOVUPS Z%d, %d(R10)(AX*4)", r, offset)
		})
	})
	k.top(mMax, k.base["mTop"])
	k.top(vMax, k.base["vTop"])
	for _, c := range []struct {
		top, code, codes string
		moment           int
		signed           bool
	}{{"mTop", "R12", "m", 0, true}, {"vTop", "R13", "v", adamW8V, false}} {
		k.constantsOfCode(c.code, c.signed)
		k.inverse(k.base[c.top], encodeScale)
		k.I("MOVQ %d(R11), R10", adamW8Moments)
		pass(func() {
			if c.signed {
				fetch("g", 4)
			} else {
				fetch("m", 1)
				fetch("v", 1)
			}
			k.I("VMOVUPS %d(R10)(AX*4), Z%d", c.moment, encoded)
			k.code(c.code, c.codes, c.signed)
		})
	}
	for _, slice := range []string{"p", "g"} {
		k.I("ADDQ $1024, %s", k.base[slice])
	}
	for _, slice := range []string{"m", "v"} {
		k.I("ADDQ $256, %s", k.base[slice])
	}
	for _, slice := range []string{"mTop", "vTop"} {
		k.I("ADDQ $4, %s", k.base[slice])
	}
	k.I("DECQ CX")
	k.I("JMP %s", block)
	k.Label(done)
	k.end()
}

// moments updates vector u of a parameter, p, by its gradient, g, and by the decoded moments m and v. It updates and
// stores these, and the largest magnitudes with them.
func (k *update) moments(u, g, m, v, t, p, magnitude, mMax, vMax int, store func(r, offset int)) {
	const scale, beta1, keep1, beta2, keep2, decay, rate, correct2, eps, floor = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	k.load("g", u, g)
	k.op("VMULPS", k.c(scale), g, g)
	k.op("VMULPS", k.c(beta1), m, m)
	k.op("VFMADD231PS", k.c(keep1), g, m)
	store(m, 0)
	k.op("VMULPS", g, g, g)
	k.op("VMULPS", k.c(beta2), v, v)
	k.op("VFMADD231PS", k.c(keep2), g, v)
	store(v, adamW8V)
	k.op("VANDPS", magnitude, m, t)
	k.op("VPMAXUD", t, mMax, mMax)
	k.op("VPMAXUD", v, vMax, vMax)
	k.op("VMULPS", k.c(correct2), v, t)
	k.op("VSQRTPS", t, t)
	k.op("VADDPS", k.c(eps), t, t)
	k.op("VMULPS", k.c(rate), m, m)
	k.op("VDIVPS", t, m, m)
	k.load("p", u, p)
	k.descend(p, m, t, decay, floor, u)
}

// top writes the largest lane of register r, the bits of a number of at least 0, to an address. A number that cannot
// scale a block becomes 0.
func (k *kernel) top(r int, address string) {
	const least, notLess = 0x00800000, 0x15 // true for NaN
	k.across("VPMAXU", "D", r)
	k.I("MOVL $%#x, R10", least)
	k.I("VMOVD R10, X%d", r+1)
	k.I("VCMPSS $%d, X%d, X%d, K3", notLess, r+1, r)
	k.I("VMOVAPS.Z X%[1]d, K3, X%[1]d", r)
	k.I("VMOVSS X%d, (%s)", r, address)
}

// inverse sets register r to 1/x for the number x at an address, and to 0 for 0.
func (k *kernel) inverse(address string, r int) {
	const x, one32, zero, differs = encoded, encodedIndex, encodedMid, 0x04 // NEQ, true for NaN
	k.I("VBROADCASTSS (%s), Z%d", address, x)
	k.fillFar(one, one32)
	k.op("VPXORD", zero, zero, zero)
	k.I("VCMPPS $%d, Z%d, Z%d, K3", differs, zero, x)
	k.I("VDIVPS.Z Z%d, Z%d, K3, Z%d", x, one32, r)
}
