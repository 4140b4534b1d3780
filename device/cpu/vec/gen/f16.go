package main

import "anneal/internal/asmgen"

// f16 writes the conversions of float16. The instructions round to nearest even regardless of the control register
// and support subnormal numbers. AVX2 has no masked loads and stores of 16 bits, so it processes whole vectors only.
func (s *isa) f16(f *asmgen.File) {
	limit := ""
	if s.name == "AVX2" {
		limit = " Elements past a multiple of 8 are skipped."
	}
	for _, c := range []struct{ name, doc, dst, src string }{
		{"packF16", "rounds src to float16." + limit, "dst:f16", "src"},
		{"unpackF16", "widens float16." + limit, "dst", "src:f16"},
	} {
		k := s.kernel(f, c.name, c.doc, []string{c.dst, c.src}, "", "")
		k.whole = s.name == "AVX2"
		k.loop(4, func(u int) {
			k.ahead(u, "src")
			k.load("src", u, u)
			k.store(u, "dst", u)
		})
		k.Ret()
	}
}

func (k *kernel) loadF16(at string, dst int) {
	if k.tail {
		k.I("VCVTPH2PS.Z %s, K1, %s", at, k.reg(dst))
		return
	}
	k.I("VCVTPH2PS %s, %s", at, k.reg(dst))
}

func (k *kernel) storeF16(src int, at string) {
	mask := ""
	if k.tail {
		mask = "K1, "
	}
	k.I("VCVTPS2PH $0, %s, %s%s", k.reg(src), mask, at)
}
