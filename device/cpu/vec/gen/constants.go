package main

import "fmt"

// The rows of vec.lanes, by number.
const (
	expLow = iota
	expHigh
	log2e
	roundMagic
	ln2Hi
	ln2Lo
	expC6
	expC5
	expC4
	expC3
	expC2
	one
	signBit
	lastBit              // of bfloat16: 0x10000
	belowHalf            // 0x7fff
	half                 // 0x8000
	upperHalf            // 0xffff0000
	constants            // the rest is read from memory in AVX-512 too, or not used there
	quietBit  = iota - 1 // quiet bit of a NaN: 0x400000
	bias                 // int32 127
	tieBit               // int32 1
	minusOne
	tanhHigh
	tanhLow
	tanhP4
	tanhP3
	tanhP2
	tanhP1
	tanhP0
	tanhQ4
	tanhQ3
	tanhQ2
	tanhQ1
	magnitudeBits // 0x7fffffff
	exponentBits  // 0x7f800000
	geluMinusA
	geluMinusB
	geluA
	geluB3 // 3·B
	geluHigh
	geluLow
)

// firstConstant is the first register in which AVX-512 kernels keep constants; AVX2 has too few registers and reads
// them from memory.
const firstConstant = 32 - constants

// use loads constants.
func (k *kernel) use(constants ...int) {
	for _, c := range constants {
		switch {
		case k.neon():
			k.neonConstant(c, firstConstant+c)
		case k.wide():
			k.I("VBROADCASTSS ·lanes+%d(SB), %s", 32*c, k.constant(c))
		}
	}
}

// useExp loads the constants of exp.
func (k *kernel) useExp() {
	k.use(expLow, expHigh, log2e, roundMagic, ln2Hi, ln2Lo, expC6, expC5, expC4, expC3, expC2, one, signBit)
}

// constant returns the operand of a constant; it must be the first operand of the instruction.
func (k *kernel) constant(c int) string {
	if k.wide() {
		return fmt.Sprintf("Z%d", firstConstant+c)
	}
	return fmt.Sprintf("·lanes+%d(SB)", 32*c)
}

// with writes an instruction whose first operand is a constant.
func (k *kernel) with(name string, c, a, dst int) {
	if k.neon() {
		k.neonOp(name, firstConstant+c, a, dst)
		return
	}
	k.I("%s %s, %s, %s", name, k.constant(c), k.reg(a), k.reg(dst))
}

// withFar is with for a constant that stays in memory on both instruction sets.
func (k *kernel) withFar(name string, c, a, dst int) {
	if k.neon() {
		k.neonConstant(c, neonTemp)
		k.neonOp(name, neonTemp, a, dst)
		return
	}
	if k.wide() {
		name += ".BCST"
	}
	k.I("%s ·lanes+%d(SB), %s, %s", name, 32*c, k.reg(a), k.reg(dst))
}

// fillFar is fill for a constant that stays in memory on both instruction sets.
func (k *kernel) fillFar(c, r int) {
	if k.neon() {
		k.neonConstant(c, r)
		return
	}
	k.I("VBROADCASTSS ·lanes+%d(SB), %s", 32*c, k.reg(r))
}

// fill sets register r to a constant.
func (k *kernel) fill(c, r int) {
	if k.neon() {
		k.VCopy(k.real(r), firstConstant+c)
		return
	}
	k.I("VMOVUPS %s, %s", k.constant(c), k.reg(r))
}
