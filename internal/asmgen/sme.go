package asmgen

import "fmt"

// The instructions of Arm's matrix extension (SME) work in streaming mode, in which vector registers z0–z31 are VL
// bytes long. The matrix ZA holds four tiles of 32-bit lanes, with as many rows and as many columns as a vector has
// lanes. The number of a row is in one of R12 to R15, and an offset from 0 to 3 is added. All lanes take part, as the
// predicate p0 enables them.

// SMStart enters streaming mode, clears the vector and predicate registers, and turns the matrix on. A function that
// does so calls SMStop before it returns, because goroutines share threads, and uses no instruction of NEON between
// them.
func (fn *Func) SMStart() { fn.word(0xd503477f, "smstart") }

// SMStop leaves streaming mode, clears the same registers, and turns the matrix off.
func (fn *Func) SMStop() { fn.word(0xd503467f, "smstop") }

// ZAClear clears the matrix.
func (fn *Func) ZAClear() { fn.word(0xc00800ff, "zero {za}") }

// ZAll sets all lanes of p0.
func (fn *Func) ZAll() { fn.word(0x2598e3e0, "ptrue p0.s") }

// ZLoad and ZStore move a register from or to memory, at an offset in vectors from a general register.
func (fn *Func) ZLoad(z, vectors int, base string)  { fn.moveZ("ldr", 0x85804000, z, vectors, base) }
func (fn *Func) ZStore(z, vectors int, base string) { fn.moveZ("str", 0xe5804000, z, vectors, base) }

func (fn *Func) moveZ(name string, word uint32, z, vectors int, base string) {
	if vectors < -256 || vectors > 255 {
		panic(fmt.Sprintf("asmgen: no encoding of %s, %d vectors from %s", name, vectors, base))
	}
	at := fmt.Sprintf("[x%d, #%d, mul vl]", xreg(base), vectors)
	if vectors == 0 {
		at = fmt.Sprintf("[x%d]", xreg(base))
	}
	imm := uint32(vectors & 511)
	fn.word(word|uint32(z|xreg(base)<<5)|imm&7<<10|imm>>3<<16, "%s z%d, %s", name, z, at)
}

// ZAdd adds a register of 32-bit lanes to another.
func (fn *Func) ZAdd(z, n int) {
	fn.word(0x65800000|uint32(z|z<<5|n<<16), "fadd z%d.s, z%d.s, z%d.s", z, z, n)
}

// FMOPA adds the outer product of two registers to a tile: rows as n, columns as m, one FMA for each sum.
func (fn *Func) FMOPA(tile, n, m int) {
	fn.word(0x80800000|uint32(tile|n<<5|m<<16), "fmopa za%d.s, p0/m, p0/m, z%d.s, z%d.s", tile, n, m)
}

// ZFromRow copies a row of a tile to a register.
func (fn *Func) ZFromRow(z, tile int, slice string, offset int) {
	r := xreg(slice)
	if r < 12 || r > 15 || offset < 0 || offset > 3 {
		panic(fmt.Sprintf("asmgen: no slice %s+%d of a tile", slice, offset))
	}
	fn.word(0xc0820000|uint32(z|offset<<5|tile<<7|(r-12)<<13),
		"mov z%d.s, p0/m, za%dh.s[w%d, %d]", z, tile, r, offset)
}
