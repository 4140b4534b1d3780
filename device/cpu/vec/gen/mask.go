package main

import "anneal/internal/asmgen"

// mask runs Philox on 16 blocks at a time, which mask.go of package vec turns into 128 factors. A register holds one
// word of a block in each 64-bit lane; the upper 32 bits are ignored. Even and odd blocks are in separate registers,
// so that their words can be interleaved.
func (s *isa) mask(f *asmgen.File) {
	s.random(s.kernel(f, "mask", "writes random factors, 0 or scale.", []string{"dst"}, "m *Mask[float32]", ""), true)
	s.random(s.kernel(f, "halves", "writes 16-bit random numbers.", []string{"dst:u32"}, "m *Mask[float32]", ""), false)
}

// random writes mask's code, for factors or for the 16-bit numbers that determine them.
func (s *isa) random(k *kernel, factors bool) {
	if k.neon() {
		k.neonRandom(factors)
		return
	}
	const m0, m1, k0, k1, keep, scale = 10, 11, 12, 13, 14, 15
	k.Arg("m", "R11")
	k.I("MOVL (R11), R12") // the first word of the counter
	k.I("VPBROADCASTD 24(R11), %s", k.reg(keep))
	k.I("VBROADCASTSS 28(R11), %s", k.reg(scale))
	k.I("VPBROADCASTD ·philoxWords(SB), %s", k.reg(m0))
	k.I("VPBROADCASTD ·philoxWords+32(SB), %s", k.reg(m1))
	if k.wide() {
		k.I("MOVL $0xaaaa, R10")
		k.I("KMOVW R10, K2")
	}
	loop, done := k.NewLabel("loop"), k.NewLabel("done")
	k.Label(loop)
	k.I("CMPQ CX, $128")
	k.I("JLT %s", done)
	for first := 0; first < 16; first += k.lanes {
		c, t := [2][4]int{{0, 1, 2, 3}, {4, 5, 6, 7}}, [2]int{8, 9}
		for odd := range 2 {
			k.I("VMOVD R12, X%d", c[odd][0])
			k.I("VPBROADCASTD X%d, %s", c[odd][0], k.reg(c[odd][0]))
			k.I("VPADDD ·philoxBlocks+%d(SB), %[2]s, %[2]s", 64*odd+4*first, k.reg(c[odd][0]))
			for w := 1; w < 4; w++ {
				k.I("VPBROADCASTD %d(R11), %s", 4*w, k.reg(c[odd][w]))
			}
		}
		k.I("VPBROADCASTD 16(R11), %s", k.reg(k0))
		k.I("VPBROADCASTD 20(R11), %s", k.reg(k1))
		for range 10 {
			for odd := range c {
				w := &c[odd]
				k.op("VPMULUDQ", m0, w[0], t[0])
				k.op("VPMULUDQ", m1, w[2], t[1])
				// the upper halves; shifts would wait for multiplications
				k.I("VPSHUFD $0xf5, %s, %s", k.reg(t[1]), k.reg(w[0]))
				k.xor3(k0, w[1], w[0])
				k.I("VPSHUFD $0xf5, %s, %s", k.reg(t[0]), k.reg(w[2]))
				k.xor3(k1, w[3], w[2])
				w[1], t[1] = t[1], w[1]
				w[3], t[0] = t[0], w[3]
			}
			k.addWord(64, k0)
			k.addWord(96, k1)
		}
		for w := range 4 {
			x, y := c[0][w], c[1][w]
			k.I("VPSLLQ $32, %[1]s, %[1]s", k.reg(y))
			if k.wide() {
				k.I("VPBLENDMD %s, %s, K2, %s", k.reg(y), k.reg(x), k.reg(x))
			} else {
				k.I("VPBLENDD $0xaa, %s, %s, %s", k.reg(y), k.reg(x), k.reg(x))
			}
			k.I("VPSLLD $16, %s, %s", k.reg(x), k.reg(y))
			k.I("VPSRLD $16, %[1]s, %[1]s", k.reg(y))
			k.I("VPSRLD $16, %[1]s, %[1]s", k.reg(x))
			for half, r := range []int{y, x} {
				switch {
				case !factors:
				case k.wide():
					k.I("VPCMPGTD %s, %s, K1", k.reg(r), k.reg(keep))
					k.I("VMOVAPS.Z %s, K1, %s", k.reg(scale), k.reg(r))
				default:
					k.op("VPCMPGTD", r, keep, r)
					k.op("VPAND", scale, r, r)
				}
				k.I("VMOVUPS %s, %d(DI)(AX*4)", k.reg(r), 4*(32*w+16*half+first))
			}
		}
	}
	k.I("ADDL $16, R12")
	k.I("ADDQ $128, AX")
	k.I("SUBQ $128, CX")
	k.I("JMP %s", loop)
	k.Label(done)
	k.Ret()
}

// xor3 is r ^= a ^ b.
func (k *kernel) xor3(a, b, r int) {
	if k.wide() {
		k.I("VPTERNLOGD $0x96, %s, %s, %s", k.reg(a), k.reg(b), k.reg(r))
		return
	}
	k.op("VPXOR", b, r, r)
	k.op("VPXOR", a, r, r)
}

// addWord adds the word at an offset of philoxWords to the lanes of register r.
func (k *kernel) addWord(offset, r int) {
	if k.wide() {
		k.I("VPADDD.BCST ·philoxWords+%d(SB), %[2]s, %[2]s", offset, k.reg(r))
		return
	}
	k.I("VPADDD ·philoxWords+%d(SB), %[2]s, %[2]s", offset, k.reg(r))
}
