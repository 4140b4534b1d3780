package main

import (
	"fmt"
	"strings"

	"anneal/internal/asmgen"
)

// NEON runs the same kernels as AVX-512: 32 registers, the constants in the last ones. It has four lanes. This file
// has the differences: op translates the instructions, and the frame has no masks, so the rest is a loop over single
// elements, in the lowest lanes of registers whose other lanes are 0.
//
// General registers: the slices are in R0 … R5, their current addresses in R6 … R11, the elements done in R12 and
// left in R13, the address of lanes in R15, and the struct of a kernel's constants in R16. R14 is scratch.
const (
	neonDone   = "R12"
	neonLeft   = "R13"
	neonLanes  = "R15"
	neonStruct = "R16"
)

// Scratch registers of the translation. They are among those of AVX-512's constants for rounding that NEON does not
// need; quiet is another of them.
const (
	neonQuiet = firstConstant + lastBit
	neonTemp  = firstConstant + half
)

func (s *isa) neon() bool { return s.full == "V" }

func (s *isa) arch() string {
	if s.neon() {
		return "arm64"
	}
	return ""
}

func (k *kernel) neonLoop(unroll int, body func(u int)) {
	single, rest, done := k.NewLabel("single"), k.NewLabel("rest"), k.NewLabel("done")
	round := func(n, elements int, next string) {
		again := k.NewLabel("loop")
		k.Label(again)
		k.I("CMP $%d, %s", elements, neonLeft)
		k.I("BLT %s", next)
		for _, slice := range k.slices {
			k.I("ADD %s<<%d, %s, %s", neonDone, log2(k.size(slice)), k.base[slice], k.current(slice))
		}
		for u := range n {
			body(u)
			k.renamed = nil // renamed registers are not used after this
		}
		k.I("ADD $%d, %s", elements, neonDone)
		k.I("SUB $%d, %s", elements, neonLeft)
		k.I("B %s", again)
	}
	if unroll > 1 {
		round(unroll, unroll*k.lanes, single)
		k.Label(single)
	}
	round(1, k.lanes, rest)
	k.Label(rest)
	if k.whole {
		return
	}
	k.tail = true
	round(1, 1, done)
	k.tail = false
	k.Label(done)
}

// current returns the register with the address of the vectors of an iteration.
func (k *kernel) current(slice string) string { return fmt.Sprintf("R%d", k.number(slice)+6) }

func (k *kernel) number(slice string) (n int) {
	fmt.Sscanf(k.base[slice], "R%d", &n)
	return n
}

// neonMove moves vector u of a slice, or in the rest one element.
func (k *kernel) neonMove(move func(v, size, offset int, base string), slice string, u, r int) {
	size := k.size(slice)
	if k.tail {
		move(r, size, 0, k.current(slice))
		return
	}
	move(r, size*k.lanes, size*k.lanes*u, k.current(slice))
}

func (k *kernel) neonLoad(slice string, u, dst int) {
	dst = k.real(dst)
	k.neonMove(k.VLoad, slice, u, dst)
	switch {
	case k.bf16[slice]:
		k.VShift("shll", dst, dst, 16)
	case k.f16[slice]:
		k.V("fcvtl.4s", dst, dst)
	}
}

func (k *kernel) neonStore(src int, slice string, u int) {
	src = k.real(src)
	switch {
	case k.bf16[slice]:
		k.VShift("shrn", neonTemp, src, 16)
		src = neonTemp
	case k.f16[slice]:
		k.V("fcvtn.4h", neonTemp, src)
		src = neonTemp
	}
	k.neonMove(k.VStore, slice, u, src)
}

// real returns the register that currently holds r. VFMADD213PS computes into a scratch register, which then is r, and
// the former r becomes scratch; a copy would cost an instruction.
func (k *kernel) real(r int) int {
	if to, ok := k.renamed[r]; ok {
		return to
	}
	return r
}

// neonNames are the instructions on registers whose operands are those of amd64 in reverse order.
var neonNames = map[string]string{
	"VADDPS": "fadd", "VSUBPS": "fsub", "VMULPS": "fmul", "VDIVPS": "fdiv", "VMINPS": "fmin", "VMAXPS": "fmax",
	"VSQRTPS": "fsqrt", "VFMADD231PS": "fmla", "VANDPS": "and", "VORPS": "orr", "VXORPS": "eor",
	"VPADDD": "add", "VPSUBD": "sub", "VPMAXUD": "umax", "VPMINSD": "smin", "VADDPD": "fadd.2d",
	"VFMADD231PD": "fmla.2d",
}

// neonOp writes an instruction that is named as on amd64, destination last. If one operand of a minimum or maximum is
// NaN, so is the result. amd64 returns one fixed operand, and its kernels put the one that may be NaN there.
func (k *kernel) neonOp(name string, regs ...int) {
	r := make([]int, len(regs))
	for i, x := range regs {
		r[len(r)-1-i] = k.real(x)
	}
	switch name {
	case "VMOVAPS":
		k.VCopy(r[0], r[1])
	case "VFMADD213PS": // regs[2] = regs[2]·regs[1] + regs[0]
		scratch := k.real(neonTemp)
		if r[2] != scratch {
			k.VCopy(scratch, r[2])
		}
		k.V("fmla", scratch, r[1], r[0])
		if k.renamed == nil {
			k.renamed = map[int]int{}
		}
		k.renamed[regs[2]], k.renamed[neonTemp] = scratch, r[0]
	case "VFNMADD231PS": // the second operand is negated, and NaN should keep its sign: constants come first on amd64
		k.V("fmls", r[0], r[2], r[1])
	default:
		n, ok := neonNames[name]
		if !ok {
			panic("no translation of " + name)
		}
		k.V(n, r...)
	}
}

// neonConstant loads a constant from memory.
func (k *kernel) neonConstant(c, r int) { k.VLoad(k.real(r), 16, 32*c, neonLanes) }

// neonExp is exp. Lanes below the limit, which does not hold for NaN, become 0 at the end.
func (k *kernel) neonExp(x, n, p, low int) {
	c := func(c int) int { return firstConstant + c }
	r := k.real(x)
	k.V("fcmgt", low, c(expLow), r)
	k.V("fmin", r, r, c(expHigh))
	k.V("fmul", n, r, c(log2e))
	k.V("frintn", n, n)
	k.V("fmls", r, n, c(ln2Hi))
	k.V("fmls", r, n, c(ln2Lo))
	k.fill(expC6, p)
	for _, c := range []int{expC5, expC4, expC3, expC2, one, one} {
		k.with("VFMADD213PS", c, x, p)
	}
	power := k.real(p)
	k.V("fcvtns", n, n)
	k.VShift("sshr", r, n, 1)
	k.V("sub", n, n, r)
	for _, half := range []int{r, n} { // 2ⁿ in two steps; its exponent is added to that of one
		k.VShift("shl", half, half, 23)
		k.V("add", half, half, c(one))
		k.V("fmul", power, power, half)
	}
	k.V("bic", r, power, low)
}

// neonAcross combines the lanes of register r.
func (k *kernel) neonAcross(op, kind string, r int) {
	switch op + kind {
	case "VADDPS":
		k.V("faddp", r, r, r)
		k.V("faddp.s", r, r)
	case "VADDPD":
		k.V("faddp.d", r, r)
	case "VMAXPS":
		k.V("fmaxv", r, r)
	case "VPMAXUD":
		k.V("umaxv", r, r)
	default:
		panic("no translation of " + op + kind)
	}
}

// neonNearest sets a register to the bits of x plus just below half of the last place of bfloat16, and 1 if that place
// is odd.
func (k *kernel) neonNearest(x, to int) {
	k.VShift("shl", neonTemp, x, 15)
	k.V("add", to, x, firstConstant+belowHalf)
	k.VShift("usra", to, neonTemp, 31)
}

// neonRound is roundBF16: a NaN, which is not equal to itself, keeps its upper half and becomes quiet.
func (k *kernel) neonRound(x int) {
	k.V("fcmeq", nanTemp, x, x)
	k.neonNearest(x, roundTemp)
	k.V("orr", x, x, neonQuiet)
	k.V("bit", x, roundTemp, nanTemp)
}

// flush switches subnormal numbers off or on, by the bit FZ of the control register.
func (k *kernel) flush(on bool) {
	switch {
	case k.neon() && on:
		k.I("MOVD $%#x, R14", 1<<24)
		k.I("MSR R14, FPCR")
	case k.neon():
		k.I("MSR ZR, FPCR")
	case on:
		k.I("LDMXCSR ·flushSubnormals(SB)")
	default:
		k.I("LDMXCSR ·keepSubnormals(SB)")
	}
}

// eachHead writes the loop of a kernel and its end, with body for each of consecutive heads. The slices of two heads
// are n·bytes apart, where n is the number of elements of the first slice, which has the angles.
func (k *kernel) eachHead(slices []string, bytes int, body func()) {
	head, done := k.NewLabel("head"), k.NewLabel("done")
	if k.neon() {
		k.Arg("heads", neonStruct)
		k.Label(head)
		k.I("SUBS $1, %s", neonStruct)
		k.I("BLT %s", done)
		body()
		for _, s := range slices {
			k.I("ADD %s<<%d, %s", neonDone, log2(bytes), k.base[s])
		}
		k.restart("cos")
		k.I("B %s", head)
		k.Label(done)
		k.Ret()
		return
	}
	k.Arg("heads", "R11")
	k.I("MOVQ CX, R12")
	k.I("SHLQ $%d, R12", log2(bytes))
	k.Label(head)
	k.I("DECQ R11")
	k.I("JLT %s", done)
	body()
	for _, s := range slices {
		k.I("ADDQ R12, %s", k.base[s])
	}
	k.restart("cos")
	k.I("JMP %s", head)
	k.Label(done)
	k.Ret()
}

func log2(n int) int { return strings.Index("124", fmt.Sprint(n)) }

// neonRotatePairs is rotatePairs: the numbers of each pair are separated, rotated as in rotate, and joined.
func (s *isa) neonRotatePairs(f *asmgen.File) {
	k := s.kernel(f, "rotatePairs", "rotates neighbouring pairs in x. Elements past whole vectors are skipped.",
		[]string{"x", "cos", "sin"}, "", "")
	const first, second, a, b, cos, sin, next = 0, 1, 2, 3, 4, 5, 6
	loop, done := k.NewLabel("loop"), k.NewLabel("done")
	k.Label(loop)
	k.I("SUBS $8, %s", neonLeft)
	k.I("BLT %s", done)
	k.VLoadPair(first, second, 0, k.base["x"])
	k.VLoad(cos, 16, 0, k.base["cos"])
	k.VLoad(sin, 16, 0, k.base["sin"])
	k.V("uzp1", a, first, second)
	k.V("uzp2", b, first, second)
	k.V("fmul", next, a, cos)
	k.V("fmls", next, b, sin)
	k.V("fmul", b, b, cos)
	k.V("fmla", b, a, sin)
	k.V("zip1", first, next, b)
	k.V("zip2", second, next, b)
	k.VStorePair(first, second, 0, k.base["x"])
	k.I("ADD $32, %s", k.base["x"])
	k.I("ADD $16, %s", k.base["cos"])
	k.I("ADD $16, %s", k.base["sin"])
	k.I("B %s", loop)
	k.Label(done)
	k.Ret()
}

// neonInt8 is int8, for whole vectors only.
func (s *isa) neonInt8(f *asmgen.File) {
	const limit = " Elements past whole vectors are skipped."
	k := s.kernel(f, "packInt8", "rounds scale·src/65536 to int8 with 16-bit random numbers."+limit,
		[]string{"codes:u8", "src", "random:u32"}, "scale float32", "")
	k.whole = true
	const scale, top, zero = 8, 10, 11
	k.broadcast("scale", scale)
	k.integer(127, top)
	k.VClear(zero)
	k.loop(2, func(u int) {
		x, y, r := 3*u, 3*u+1, 3*u+2
		k.load("src", u, x)
		k.load("random", u, r)
		k.V("fabs", y, x)
		k.V("fmul", y, y, scale)
		k.V("fcvtns", y, y)
		k.V("add", y, y, r)
		k.VShift("ushr", y, y, 16)
		k.V("smin", y, y, top)
		k.V("sub", r, zero, y)
		k.VShift("sshr", x, x, 31) // all ones if negative
		k.V("bit", y, r, x)
		k.V("xtn.4h", y, y)
		k.V("xtn.8b", y, y)
		k.VStore(y, 4, 4*u, k.current("codes"))
	})
	k.Ret()

	k = s.kernel(f, "unpackInt8", "is dst = scale·codes."+limit, []string{"dst", "codes:u8"}, "scale float32", "")
	k.whole = true
	k.broadcast("scale", scale)
	k.loop(2, func(u int) {
		k.VLoad(u, 4, 4*u, k.current("codes"))
		k.V("sxtl.8h", u, u)
		k.V("sxtl.4s", u, u)
		k.V("scvtf", u, u)
		k.V("fmul", u, u, scale)
		k.store(u, "dst", u)
	})
	k.Ret()
}

// neonRandom is random: Philox on four blocks at a time, a word of each in a register. A product of 32-bit numbers has
// two registers of two; its upper and lower words are then separated.
func (k *kernel) neonRandom(factors bool) {
	const m0, m1, keep, scale, weyl0, weyl1, lane, group = 16, 17, 18, 19, 20, 21, 22, 23
	const low, high, low2, high2, k0, k1 = 4, 5, 6, 7, 8, 9
	k.Arg("m", neonStruct)
	word := func(at, r int) {
		k.VLoad(r, 4, at, neonStruct)
		k.VSplat(r, r, 0)
	}
	word(24, keep)
	word(28, scale)
	k.I("MOVD $·philoxWords(SB), R14")
	for i, r := range []int{m0, m1, weyl0, weyl1} {
		k.VLoad(r, 16, 32*i, "R14")
	}
	k.I("MOVD $·philoxLanes(SB), R14")
	k.VLoad(lane, 16, 0, "R14")
	word(0, group)
	k.V("add", group, group, lane) // the first words of four blocks' counters
	k.integer(4, lane)
	loop, done := k.NewLabel("loop"), k.NewLabel("done")
	k.Label(loop)
	k.I("SUBS $128, %s", neonLeft)
	k.I("BLT %s", done)
	for first := 0; first < 16; first += 4 {
		c := [4]int{0, 1, 2, 3}
		k.VCopy(c[0], group)
		k.V("add", group, group, lane)
		for w := 1; w < 4; w++ {
			word(4*w, c[w])
		}
		word(16, k0)
		word(20, k1)
		for range 10 {
			k.V("umull", low, c[0], m0)
			k.V("umull2", high, c[0], m0)
			k.V("umull", low2, c[2], m1)
			k.V("umull2", high2, c[2], m1)
			k.V("uzp2", c[0], low2, high2)
			k.V("eor", c[0], c[0], c[1])
			k.V("eor", c[0], c[0], k0)
			k.V("uzp1", c[1], low2, high2)
			k.V("uzp2", c[2], low, high)
			k.V("eor", c[2], c[2], c[3])
			k.V("eor", c[2], c[2], k1)
			k.V("uzp1", c[3], low, high)
			k.V("add", k0, k0, weyl0)
			k.V("add", k1, k1, weyl1)
		}
		for w, x := range c {
			k.VShift("shl", low, x, 16)
			k.VShift("ushr", low, low, 16)
			k.VShift("ushr", high, x, 16)
			for half, r := range []int{low, high} {
				if factors {
					k.V("cmgt", r, keep, r)
					k.V("and", r, r, scale)
				}
				k.VStore(r, 16, 4*(32*w+16*half+first), k.base["dst"])
			}
		}
	}
	k.I("ADD $512, %s", k.base["dst"])
	k.I("B %s", loop)
	k.Label(done)
	k.Ret()
}
