package main

import "anneal/internal/asmgen"

// NEON has no instruction that looks numbers up in a table of more than 64 bytes. Indices move to general registers,
// four numbers are loaded one by one, and three instructions join them. Selecting among 256 numbers in registers would
// take 16 instructions on four registers each for 16 numbers, and loads of these registers. Encoding finds four codes
// by their bins in 11 instructions; the minimum of the lines and its conversion would take 22.
//
// Without the 5 instructions of the loop, 16 elements take 52 instructions in decode, 16 of them on vector pipes; 103
// in encode, 48 of them on vector pipes; and 115 in encodeSigned, 60 of them on vector pipes.

// General registers besides those of the frame.
const (
	neonTable   = "R19" // the numbers that are looked up: values of a code, or its midpoints
	neonBins    = "R20" // the bins; in adamW8 also the values of the second code
	neonMoments = "R21" // in adamW8 the moments of a block
	neonMoment  = "R22" // and those of an iteration
	neonCodes   = "R14" // eight codes
	neonCode    = "R17" // one of them
)

// neonIndices are the registers of four indices.
var neonIndices = [4]string{"R23", "R24", "R25", "R26"}

const codeBins = 2392 // offset in vec.Code[float32]

// Vector registers of neonCode: four of numbers, four of their midpoints, three for joining, and so on. Those between
// neonSign and neonNegative are constants in adamW8.
const (
	neonNumbers, neonMids, neonJoin, neonSigns, neonCoded = 0, 4, 8, 11, 12

	neonScale, neonLeast, neonMost, neonZero, neonSign = 13, 14, 15, 16, 17
	neonNegative, neonBin                              = 29, 31
)

// neonLookup sets the lowest lane to a number of a table.
func (k *kernel) neonLookup(base, index string, dst int) {
	k.I("FMOVS (%s)(%s<<2), F%d", base, index, dst)
}

// neonJoined joins the lowest lanes of dst and of the three registers from temp on.
func (k *kernel) neonJoined(dst, temp int) {
	k.V("zip1", dst, dst, temp)
	k.V("zip1", temp, temp+1, temp+2)
	k.V("zip1.2d", dst, dst, temp)
}

// neonDecode sets x and x+1 to the numbers of eight codes at offset from a general register, times register scale.
// Three registers from temp on are overwritten.
func (k *kernel) neonDecode(offset int, codes, base string, scale, x, temp int) {
	k.I("MOVD %d(%s), %s", offset, codes, neonCodes)
	for half := range 2 {
		for lane, to := range []int{x + half, temp, temp + 1, temp + 2} {
			k.I("UBFX $%d, %s, $8, %s", 32*half+8*lane, neonCodes, neonCode)
			k.neonLookup(base, neonCode, to)
		}
		k.neonJoined(x+half, temp)
		k.V("fmul", x+half, x+half, scale)
	}
}

// sixteens writes a loop over 16 elements of the slices, which it advances.
func (k *kernel) sixteens(body func()) {
	loop, done := k.NewLabel("loop"), k.NewLabel("done")
	k.Label(loop)
	k.I("SUBS $16, %s", neonLeft)
	k.I("BLT %s", done)
	body()
	for _, s := range k.slices {
		k.I("ADD $%d, %s", 16*k.size(s), k.base[s])
	}
	k.I("B %s", loop)
	k.Label(done)
}

// neonConstantsOfCode loads the constants of encoding by the code at an address.
func (k *kernel) neonConstantsOfCode(base string, signed bool) {
	const least = (127 - 24) << 23
	k.I("ADD $%d, %s, %s", codeMids+4*zeroOf(signed), base, neonTable)
	k.I("SUB $%d, %s, %s", least>>16-codeBins, base, neonBins)
	k.integer(least, neonLeast)
	k.integer(127<<23, neonMost)
	if signed {
		k.VBytes(neonZero, 127)
		k.VBytes(neonSign, 0x80)
	}
}

// neonCode writes to an address the 16 codes nearest to neonNumbers times neonScale. NaN is in the bin of 1.
func (k *kernel) neonCode(dst string, signed bool) {
	const pair = neonSigns + 1 // not yet used
	for x := range 4 {
		k.V("fmul", neonNumbers+x, neonNumbers+x, neonScale)
	}
	if signed { // the upper bytes
		k.V("uzp2.8h", neonSigns, neonNumbers, neonNumbers+1)
		k.V("uzp2.8h", pair, neonNumbers+2, neonNumbers+3)
		k.I("VUZP2 V%d.B16, V%d.B16, V%d.B16", pair, neonSigns, neonSigns)
		for x := range 4 {
			k.V("fabs", neonNumbers+x, neonNumbers+x)
		}
	}
	for i := range 4 {
		x, mid, index := neonNumbers+i, neonMids+i, neonIndices
		k.V("fmax", neonBin, x, neonLeast)
		k.V("umin", neonBin, neonBin, neonMost)
		k.VShift("ushr", neonBin, neonBin, 16)
		k.I("FMOVD F%d, %s", neonBin, index[0])
		k.I("VMOV V%d.D[1], %s", neonBin, index[2])
		k.I("LSR $32, %s, %s", index[0], index[1])
		k.I("LSR $32, %s, %s", index[2], index[3])
		for lane, to := range []int{mid, neonJoin, neonJoin + 1, neonJoin + 2} {
			k.I("MOVBU (%s)(%s.UXTW), %s", neonBins, index[lane], index[lane])
			k.neonLookup(neonTable, index[lane], to)
		}
		k.neonJoined(mid, neonJoin)
		k.V("fcmgt", mid, x, mid)
		for lane := range 3 {
			k.I("ORR %s<<%d, %s", index[lane+1], 8*(lane+1), index[0])
		}
		k.I("VMOV %s, V%d.S[%d]", index[0], neonCoded, i)
	}
	k.V("uzp2.8h", neonMids, neonMids, neonMids+1)
	k.V("uzp2.8h", neonMids+2, neonMids+2, neonMids+3)
	k.I("VUZP2 V%d.B16, V%[2]d.B16, V%[2]d.B16", neonMids+2, neonMids)
	k.V("sub.16b", neonCoded, neonCoded, neonMids) // all ones is −1
	if signed {
		k.V("cmhs.16b", neonSigns, neonSigns, neonSign)
		k.I("VUMIN V%d.B16, V%d.B16, V%d.B16", neonZero, neonCoded, neonNegative)
		k.V("sub.16b", neonNegative, neonZero, neonNegative)
		k.V("add.16b", neonCoded, neonCoded, neonZero)
		k.V("bit", neonCoded, neonNegative, neonSigns)
	}
	k.VStore(neonCoded, 16, 0, dst)
}

// neonDecoding and neonEncoding are the primitives of vec.Code, for whole groups of 16 elements only.
func (s *isa) neonDecoding(f *asmgen.File, name, doc string) {
	const scale, x, temp = 8, 0, 4
	k := s.kernel(f, name, doc, []string{"dst", "codes:u8"}, "c *Code[float32], scale float32", "")
	k.Arg("c", neonTable)
	k.broadcast("scale", scale)
	k.sixteens(func() {
		for half := range 2 {
			k.neonDecode(8*half, k.base["codes"], neonTable, scale, x, temp)
			k.VStorePair(x, x+1, 32*half, k.base["dst"])
		}
	})
	k.Ret()
}

func (s *isa) neonEncoding(f *asmgen.File, name, doc string, signed bool) {
	k := s.kernel(f, name, doc, []string{"codes:u8", "src"}, "c *Code[float32], scale float32", "")
	k.Arg("c", neonStruct)
	k.broadcast("scale", neonScale)
	k.neonConstantsOfCode(neonStruct, signed)
	k.sixteens(func() {
		k.VLoadPair(neonNumbers, neonNumbers+1, 0, k.base["src"])
		k.VLoadPair(neonNumbers+2, neonNumbers+3, 32, k.base["src"])
		k.neonCode(k.base["codes"], signed)
	})
	k.Ret()
}

// neonAdamW8 is adamW8 after its start. 16 elements take 205, 125 and 111 instructions in the three passes, with those
// of the loops: 441, of which 216 on vector pipes, 8 of them square roots and divisions.
func (k *update) neonAdamW8() {
	const g, t, p, temp, m, v = 0, 1, 2, 3, 6, 8 // m, v and the registers after them are of eight numbers
	const mTop, vTop, mMax, vMax, magnitude = 10, 11, 12, 13, 14
	k.Arg("mTop_len", neonLeft) // blocks
	k.I("MOVD %d(%s), %s", adamW8Moments, neonStruct, neonMoments)

	// pass loops over 16 elements of a block at a time, at the current addresses of slices, of which some are fetched.
	pass := func(slices, fetched []string, body func()) {
		again := k.NewLabel("pass")
		k.I("MOVD ZR, %s", neonDone)
		k.Label(again)
		k.I("ADD %s<<2, %s, %s", neonDone, neonMoments, neonMoment)
		for _, s := range slices {
			k.I("ADD %s<<%d, %s, %s", neonDone, log2(k.size(s)), k.base[s], k.current(s))
		}
		for _, s := range fetched {
			k.I("PRFM %d(%s), PLDL1KEEP", adamW8Ahead*k.size(s), k.current(s))
		}
		body()
		k.I("ADD $16, %s", neonDone)
		k.I("CMP $256, %s", neonDone)
		k.I("BLT %s", again)
	}
	// encode encodes the moments that lie at an offset.
	encode := func(moments int, codes string, signed bool) {
		for x := range 4 {
			k.VLoad(neonNumbers+x, 16, moments+16*x, neonMoment)
		}
		k.neonCode(k.current(codes), signed)
	}
	block, done := k.NewLabel("block"), k.NewLabel("done")
	k.Label(block)
	k.I("SUBS $1, %s", neonLeft)
	k.I("BLT %s", done)

	k.I("MOVD %d(%s), %s", adamW8Signed, neonStruct, neonTable)
	k.I("MOVD %d(%s), %s", adamW8Unsigned, neonStruct, neonBins)
	k.VLoad(mTop, 4, 0, k.base["mTop"])
	k.VSplat(mTop, mTop, 0)
	k.VLoad(vTop, 4, 0, k.base["vTop"])
	k.VSplat(vTop, vTop, 0)
	k.fillFar(magnitudeBits, magnitude)
	k.VClear(mMax)
	k.VClear(vMax)
	pass([]string{"p", "g", "m", "v"}, []string{"p"}, func() {
		for u := range 4 {
			if u%2 == 0 {
				k.neonDecode(4*u, k.current("m"), neonTable, mTop, m, temp)
				k.neonDecode(4*u, k.current("v"), neonBins, vTop, v, temp)
			}
			k.moments(u, g, m+u%2, v+u%2, t, p, magnitude, mMax, vMax, func(r, offset int) {
				k.VStore(r, 16, offset+16*u, neonMoment)
			})
		}
	})
	k.neonTop(mMax, k.base["mTop"])
	k.neonTop(vMax, k.base["vTop"])

	k.neonInverse(k.base["mTop"], neonScale)
	k.I("MOVD %d(%s), %s", adamW8Signed, neonStruct, neonCode)
	k.neonConstantsOfCode(neonCode, true)
	pass([]string{"g", "m"}, []string{"g", "m"}, func() { encode(0, "m", true) })

	k.neonInverse(k.base["vTop"], neonScale)
	k.I("MOVD %d(%s), %s", adamW8Unsigned, neonStruct, neonCode)
	k.neonConstantsOfCode(neonCode, false)
	pass([]string{"v"}, []string{"v"}, func() { encode(adamW8V, "v", false) })

	for _, s := range []string{"p", "g", "m", "v"} {
		k.I("ADD $%d, %s", 256*k.size(s), k.base[s])
	}
	for _, s := range []string{"mTop", "vTop"} {
		k.I("ADD $4, %s", k.base[s])
	}
	k.I("B %s", block)
	k.Label(done)
	k.end()
}

// neonTop is top.
func (k *kernel) neonTop(r int, address string) {
	k.across("VPMAXU", "D", r)
	k.I("FMOVS F%d, %s", r, neonCode)
	k.I("MOVW $%#x, %s", 0x00800000, neonCodes)
	k.I("CMPW %s, %s", neonCodes, neonCode)
	k.I("CSEL LO, ZR, %[1]s, %[1]s", neonCode)
	k.I("MOVW %s, (%s)", neonCode, address)
}

// neonInverse is inverse.
func (k *kernel) neonInverse(address string, r int) {
	const x, zero = neonNumbers, neonNumbers + 1
	k.VLoad(x, 4, 0, address)
	k.VSplat(x, x, 0)
	k.fillFar(one, r)
	k.V("fdiv", r, r, x)
	k.VClear(zero)
	k.V("fcmeq", x, x, zero)
	k.V("bic", r, r, x)
}
