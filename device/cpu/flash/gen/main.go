// Command gen writes the primitives of package flash in AVX2, AVX-512 and NEON assembly, plus those that differ for
// products of BF16 pairs and of quads, by BFMMLA.
package main

import (
	"fmt"
	"os"
	"strings"

	"anneal/internal/asmgen"
)

// A set is an instruction set and the register tile of its microkernel. A panel, tileN columns, is two registers
// wide.
type set struct {
	name         string
	full, half   string // prefixes of the whole registers and of their halves
	lanes        int    // float32 per register
	tileM, tileN int
	pair         int // elements in a word of a product's operands
}

func main() {
	for _, s := range []*set{
		{name: "AVX2", full: "Y", half: "X", lanes: 8, tileM: 4, tileN: 16, pair: 1},
		{name: "AVX512", full: "Z", half: "Y", lanes: 16, tileM: 8, tileN: 32, pair: 1},
		{name: "AVX512BF16", full: "Z", half: "Y", lanes: 16, tileM: 8, tileN: 32, pair: 2},
	} {
		f := &asmgen.File{Package: "flash", Generator: "gen/main.go"}
		s.mul(f)
		s.softmax(f)
		s.grad(f)
		s.dot(f)
		if s.pair == 2 {
			s.copyBF16(f)
			s.zip(f)
		} else {
			s.columns(f)
			s.scaleRows(f)
			s.transpose(f)
			s.load(f)
			s.loadBF16(f)
			s.storeBF16(f)
			s.loadF16(f)
			s.storeF16(f)
		}
		if err := f.Write(strings.ToLower(s.name)); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
	f := &asmgen.File{Package: "flash", Generator: "gen/main.go"}
	units := &set{name: "AMX", full: "Z", half: "Y", lanes: 16, tileN: 32, pair: 2}
	units.attend(f)
	units.descend(f)
	units.lower(f)
	for base, f := range map[string]*asmgen.File{"amx": f, "neon": neonFile(), "bfmmla": quadsFile()} {
		if err := f.Write(base); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// kernel is a function being written for a set.
type kernel struct {
	*asmgen.Func
	*set
}

func (s *set) kernel(f *asmgen.File, name, doc, params string) *kernel {
	return &kernel{f.Func(name+s.name, doc, params), s}
}

func (s *set) wide() bool { return s.lanes == 16 }

// bytes is the size of a register.
func (s *set) bytes() int { return 4 * s.lanes }

// v names vector register i.
func (s *set) v(i int) string { return fmt.Sprintf("%s%d", s.full, i) }

// op writes an instruction on vector registers, the destination last.
func (k *kernel) op(name string, regs ...int) {
	for i, r := range regs {
		if i > 0 {
			name += ","
		}
		name += " " + k.v(r)
	}
	k.I("%s", name)
}

// load and store move whole registers.
func (k *kernel) loadTo(r, offset int, base string) { k.I("VMOVUPS %d(%s), %s", offset, base, k.v(r)) }

func (k *kernel) storeTo(r, offset int, base string) { k.I("VMOVUPS %s, %d(%s)", k.v(r), offset, base) }

// fma adds the product of words a and b to c.
func (k *kernel) fma(b, a, c int) {
	if k.pair == 2 {
		k.VDPBF16PS(b, a, c)
		return
	}
	k.op("VFMADD231PS", b, a, c)
}

// argScale loads the parameter scale, the bits of a float32, into all lanes of a register.
func (k *kernel) argScale(r int) {
	k.Arg("scale", "AX")
	k.I("VMOVD AX, X%d", r)
	k.I("VBROADCASTSS X%d, %s", r, k.v(r))
}

// argBytes loads a parameter that counts float32 and converts it to bytes.
func (k *kernel) argBytes(name, reg string) {
	k.Arg(name, reg)
	k.I("SHLQ $2, %s", reg)
}

// repeat writes a loop with the iteration count in a general register; it must be positive.
func (k *kernel) repeat(count string, body func()) {
	loop := k.NewLabel("loop")
	k.Label(loop)
	body()
	k.I("DECQ %s", count)
	k.I("JNZ %s", loop)
}

// The rows of constants, by number; each is eight times the same 32 bits.
const (
	lowest = iota // below it, powers of two are 0
	c6
	c5
	c4
	c3
	c2
	c1
	c0
	bias  // 127
	lsb   // 1
	half  // 0x7fff
	quiet // 0x40
)

// constant returns the operand of a constant, which must be the first operand of an instruction. AVX-512 kernels that
// use constants keep them in the last registers; AVX2 has too few registers and reads them from memory.
func (k *kernel) constant(c int) string {
	if k.wide() {
		return k.v(20 + c)
	}
	return fmt.Sprintf("·constants+%d(SB)", 32*c)
}

func (k *kernel) loadConstants(from, to int) {
	for c := from; k.wide() && c <= to; c++ {
		k.I("VBROADCASTSS ·constants+%d(SB), %s", 32*c, k.v(20+c))
	}
}

// with writes an instruction whose first operand is a constant.
func (k *kernel) with(name string, c, a, dst int) {
	k.I("%s %s, %s, %s", name, k.constant(c), k.v(a), k.v(dst))
}
