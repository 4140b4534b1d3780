package asmgen

// A block of 64 bytes on arm64 is four consecutive registers. A search in it first yields a byte of ones or zeros for
// each byte of the block; VMask then makes it a bit.

// VFour writes an instruction of V for each of the four registers of blocks.
func (fn *Func) VFour(name string, blocks ...int) {
	for i := range 4 {
		regs := make([]int, len(blocks))
		for j, b := range blocks {
			regs[j] = b + i
		}
		fn.V(name, regs...)
	}
}

// VLoadBlock loads 64 bytes.
func (fn *Func) VLoadBlock(d int, base string) {
	fn.VLoadPair(d, d+1, 0, base)
	fn.VLoadPair(d+2, d+3, 32, base)
}

// VEqualByte finds the bytes of block n that are c. Register temp is scratch.
func (fn *Func) VEqualByte(d, n int, c byte, temp int) {
	fn.VBytes(temp, c)
	for i := range 4 {
		fn.V("cmeq.16b", d+i, n+i, temp)
	}
}

// VWithinBytes finds the bytes of block n from low to high. Register temp is scratch.
func (fn *Func) VWithinBytes(d, n int, low, high byte, temp int) {
	fn.VBytes(temp, low)
	for i := range 4 {
		fn.V("sub.16b", d+i, n+i, temp)
	}
	fn.VBytes(temp, high-low)
	for i := range 4 {
		fn.V("cmhs.16b", d+i, temp, d+i)
	}
}

// VBit sets register d for VMask: bit i%8 in byte i. Register temp and a general one are scratch.
func (fn *Func) VBit(d, temp int, reg string) {
	fn.I("MOVD $0x08040201, %s", reg)
	fn.VSplatOf(d, reg)
	fn.I("MOVD $0x80402010, %s", reg)
	fn.VSplatOf(temp, reg)
	fn.V("zip1", d, d, temp)
}

// VMask stores a bit for each byte of the search result n, at offset from a general register. It masks each byte with
// its bit of register bit, and adds neighbouring bytes three times. The block at temp is scratch: 8 instructions, all
// on vector pipes.
func (fn *Func) VMask(n, bit, temp, offset int, base string) {
	for i := range 4 {
		fn.V("and", temp+i, n+i, bit)
	}
	fn.V("addp.16b", temp, temp, temp+1)
	fn.V("addp.16b", temp+2, temp+2, temp+3)
	fn.V("addp.16b", temp, temp, temp+2)
	fn.V("addp.16b", temp, temp, temp)
	fn.VStore(temp, 8, offset, base)
}
