package main

import "anneal/internal/asmgen"

// Offsets in vec.Code[float32].
const (
	codeValues = 0
	codeMids   = 1024
	codeFirst  = 2048
)

// gather reads 32 bits at base + offset + size·index for each lane of index.
func (k *kernel) gather(name, base string, offset, index, size, dst int) {
	if k.wide() {
		k.I("KXNORW K2, K2, K2")
		k.I("%s %d(%s)(Z%d*%d), K2, Z%d", name, offset, base, index, size, dst)
		return
	}
	const mask = 14
	k.op("VPCMPEQD", mask, mask, mask)
	k.I("%s Y%d, %d(%s)(Y%d*%d), Y%d", name, mask, offset, base, index, size, dst)
}

// integer fills register r with a 32-bit number.
func (k *kernel) integer(value uint32, r int) {
	k.I("MOVL $%#x, R10", value)
	k.I("VMOVD R10, X%d", r)
	k.I("VPBROADCASTD X%d, %s", r, k.reg(r))
}

// codes writes the primitives of vec.Code, which take whole vectors only.
func (s *isa) codes(f *asmgen.File) {
	const limit = " Elements past whole vectors are left out."
	k := s.kernel(f, "decode", "is dst = scale·values[codes]."+limit, []string{"dst", "codes:u8"}, "c *Code[float32], scale float32", "")
	k.whole = true
	k.Arg("c", "R11")
	k.broadcast("scale", 8)
	k.loop(2, func(u int) {
		index, x := 2*u, 2*u+1
		k.I("VPMOVZXBD %d(%s)(AX*1), %s", k.lanes*u, k.base["codes"], k.reg(index))
		k.gather("VGATHERDPS", "R11", codeValues, index, 4, x)
		k.op("VMULPS", 8, x, x)
		k.store(x, "dst", u)
	})
	k.Ret()

	s.encode(f, "encode", "finds the numbers of an unsigned code nearest to scale·src."+limit, false)
	s.encode(f, "encodeSigned", "finds the numbers of a signed code nearest to scale·src."+limit, true)
}

func (s *isa) encode(f *asmgen.File, name, doc string, signed bool) {
	k := s.kernel(f, name, doc, []string{"codes:u8", "src"}, "c *Code[float32], scale float32", "")
	const x, index, mid, temp = 0, 1, 2, 3
	const scale, first, zero, last, low, one, magnitude, mirror, top = 4, 5, 6, 7, 8, 9, 10, 11, 12
	k.whole = true
	k.Arg("c", "R11")
	k.broadcast("scale", scale)
	k.integer((127-24)<<7, first)
	k.op("VPXOR"+map[bool]string{true: "D"}[k.wide()], zero, zero, zero)
	k.integer(24<<7, last)
	k.integer(0xff, low)
	k.integer(1, one)
	k.integer(0x7fffffff, magnitude)
	k.integer(2*127, mirror)
	k.integer(2*127, top)
	k.loop(1, func(u int) {
		k.load("src", u, x)
		k.op("VMULPS", scale, x, x)
		and := map[bool]string{false: "VPAND", true: "VPANDD"}[k.wide()]
		if signed {
			k.I("VMOVAPS %s, %s", k.reg(x), k.reg(temp))
			k.op(and, magnitude, x, x)
		}
		k.I("VPSRLD $16, %s, %s", k.reg(x), k.reg(index))
		k.op("VPSUBD", first, index, index)
		k.op("VPMAXSD", zero, index, index)
		k.op("VPMINSD", last, index, index)
		k.gather("VPGATHERDD", "R11", codeFirst, index, 1, mid)
		k.op(and, low, mid, index) // the first code
		k.gather("VGATHERDPS", "R11", codeMids, index, 4, mid)
		const above = 0x1e // GT, false for NaN
		if k.wide() {
			k.I("VCMPPS $%d, Z%d, Z%d, K3", above, mid, x)
			k.I("VPADDD Z%d, Z%d, K3, Z%d", one, index, index)
		} else {
			k.I("VCMPPS $%d, Y%d, Y%d, Y%d", above, mid, x, mid)
			k.op("VPSUBD", mid, index, index) // all ones is −1
		}
		if signed {
			k.op("VPMINSD", top, index, mid)
			k.op("VPSUBD", mid, mirror, mid)
			if k.wide() {
				k.I("VPMOVD2M Z%d, K3", temp)
				k.I("VMOVDQA32 Z%d, K3, Z%d", mid, index)
			} else {
				k.op("VBLENDVPS", temp, mid, index, index)
			}
		}
		if k.wide() {
			k.I("VPMOVDB Z%d, X%d", index, index)
			k.I("VMOVDQU X%d, (%s)(AX*1)", index, k.base["codes"])
		} else {
			k.I("VEXTRACTI128 $1, Y%d, X%d", index, mid)
			k.I("VPACKUSDW X%d, X%d, X%d", mid, index, index)
			k.I("VPACKUSWB X%d, X%d, X%d", index, index, index)
			k.I("VMOVQ X%d, (%s)(AX*1)", index, k.base["codes"])
		}
	})
	k.Ret()
}
