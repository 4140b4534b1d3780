package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// int8 writes packInt8 and unpackInt8, for whole vectors only.
func (s *isa) int8(f *asmgen.File) {
	if s.neon() {
		s.neonInt8(f)
		return
	}
	const limit = " Elements past whole vectors are skipped."
	k := s.kernel(f, "packInt8", "rounds scale·src/65536 to int8 with 16-bit random numbers."+limit,
		[]string{"codes:u8", "src", "random:u32"}, "scale float32", "")
	k.whole = true
	const scale, magnitude, top, zero = 8, 9, 10, 11
	k.broadcast("scale", scale)
	k.fillFar(magnitudeBits, magnitude)
	k.integer(127, top)
	k.op("VPXOR"+k.dwords(), zero, zero, zero)
	k.loop(2, func(u int) {
		x, y, r := 3*u, 3*u+1, 3*u+2
		k.load("src", u, x)
		k.load("random", u, r)
		k.op("VANDPS", magnitude, x, y)
		k.op("VMULPS", scale, y, y)
		k.I("VCVTPS2DQ %s, %s", k.reg(y), k.reg(y))
		k.op("VPADDD", r, y, y)
		k.I("VPSRLD $16, %s, %s", k.reg(y), k.reg(y))
		k.op("VPMINSD", top, y, y)
		at := k.bytesAt("codes", u)
		if k.wide() {
			k.I("VPMOVD2M Z%d, K4", x) // the signs
			k.I("VPSUBD Z%d, Z%d, K4, Z%d", y, zero, y)
			k.I("VPMOVDB Z%d, %s", y, at)
			return
		}
		k.op("VPSIGND", x, y, y)
		k.I("VEXTRACTI128 $1, Y%d, X%d", y, r)
		k.I("VPACKSSDW X%d, X%d, X%d", r, y, y)
		k.I("VPACKSSWB X%d, X%d, X%d", y, y, y)
		k.I("VMOVQ X%d, %s", y, at)
	})
	k.Ret()

	k = s.kernel(f, "unpackInt8", "is dst = scale·codes."+limit, []string{"dst", "codes:u8"}, "scale float32", "")
	k.whole = true
	k.broadcast("scale", scale)
	k.loop(2, func(u int) {
		k.I("VPMOVSXBD %s, %s", k.bytesAt("codes", u), k.reg(u))
		k.I("VCVTDQ2PS %s, %s", k.reg(u), k.reg(u))
		k.op("VMULPS", scale, u, u)
		k.store(u, "dst", u)
	})
	k.Ret()
}

// bytesAt returns the address of vector u of a slice of bytes.
func (k *kernel) bytesAt(slice string, u int) string {
	return fmt.Sprintf("%d(%s)(AX*1)", k.lanes*u, k.base[slice])
}

// dwords is the end of the names of bitwise integer instructions.
func (k *kernel) dwords() string {
	if k.wide() {
		return "D"
	}
	return ""
}
