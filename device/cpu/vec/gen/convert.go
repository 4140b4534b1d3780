package main

import "anneal/internal/asmgen"

// conversions writes pack and unpack. AVX2 has no masked loads and stores of 16 bits: there they take whole vectors
// only, and Go does the rest.
func (s *isa) conversions(f *asmgen.File) {
	limit := ""
	if !s.wide() {
		limit = " Elements past a multiple of 8 are left out."
	}
	s.pack(f, "rounds src to bfloat16."+limit)
	s.unpack(f, "widens bfloat16."+limit)
}

// pack rounds to nearest even in integers: it adds 0x7fff and the lowest bit that stays, then drops the lower half. A NaN
// keeps its upper half and becomes quiet.
func (s *isa) pack(f *asmgen.File, doc string) {
	k := s.kernel(f, "pack", doc, []string{narrow, "src"}, "", "")
	k.whole = !s.wide()
	const one, half, quiet = 12, 13, 14
	for i, value := range []string{"1", "0x7fff", "0x40"} {
		k.I("MOVL $%s, R10", value)
		k.I("VMOVD R10, X%d", one+i)
		k.I("VPBROADCASTD X%d, %s", one+i, k.reg(one+i))
	}
	k.loop(2, func(u int) {
		x, upper, sum, nan := 4*u, 4*u+1, 4*u+2, 4*u+3
		k.load("src", u, x)
		k.I("VPSRLD $16, %s, %s", k.reg(x), k.reg(upper))
		k.op("VPADDD", half, x, sum)
		if k.wide() {
			k.op("VPANDD", one, upper, nan)
			k.op("VPADDD", nan, sum, sum)
			k.I("VPSRLD $16, %[1]s, %[1]s", k.reg(sum))
			k.I("VCMPPS $3, %[1]s, %[1]s, K2", k.reg(x)) // unordered
			k.I("VPORD %s, %s, K2, %s", k.reg(quiet), k.reg(upper), k.reg(sum))
			mask := ""
			if k.tail {
				mask = "K1, "
			}
			k.I("VPMOVDW %s, %s%s", k.reg(sum), mask, k.at(narrow, u))
			return
		}
		k.op("VPAND", one, upper, nan)
		k.op("VPADDD", nan, sum, sum)
		k.I("VPSRLD $16, %[1]s, %[1]s", k.reg(sum))
		k.I("VCMPPS $3, %[1]s, %[1]s, %[2]s", k.reg(x), k.reg(nan)) // unordered
		k.op("VPOR", quiet, upper, upper)
		k.op("VBLENDVPS", nan, upper, sum, sum)
		k.I("VEXTRACTI128 $1, Y%d, X%d", sum, upper)
		k.I("VPACKUSDW X%d, X%d, X%d", upper, sum, sum)
		k.I("VMOVDQU X%d, %s", sum, k.at(narrow, u))
	})
	k.Ret()
}

func (s *isa) unpack(f *asmgen.File, doc string) {
	k := s.kernel(f, "unpack", doc, []string{"dst", narrow}, "", "")
	k.whole = !s.wide()
	k.loop(4, func(u int) {
		if k.tail {
			k.I("VPMOVZXWD.Z %s, K1, %s", k.at(narrow, u), k.reg(u))
		} else {
			k.I("VPMOVZXWD %s, %s", k.at(narrow, u), k.reg(u))
		}
		k.I("VPSLLD $16, %[1]s, %[1]s", k.reg(u))
		k.store(u, "dst", u)
	})
	k.Ret()
}
