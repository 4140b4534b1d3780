package main

import (
	"fmt"
	"strings"

	"anneal/internal/asmgen"
)

// An isa is an instruction set: its vector registers and the number of float32 lanes.
type isa struct {
	name       string
	full, half string // register prefixes
	lanes      int
}

func (s *isa) wide() bool { return s.full == "Z" }

// reg returns the full vector register i, low its lower half.
func (s *isa) reg(i int) string { return fmt.Sprintf("%s%d", s.full, i) }
func (s *isa) low(i int) string { return fmt.Sprintf("%s%d", s.half, i) }

// A kernel is one function being written. Every kernel has the same frame: slices in registers, AX the elements done,
// CX the elements left, a loop over several vectors, a loop over one, and a masked rest.
type kernel struct {
	*asmgen.Func
	*isa
	base  map[string]string // slice → register with its address
	bf16  map[string]bool   // slice → whether it is of bfloat16
	f16   map[string]bool   // slice → whether it is of float16
	u8    map[string]bool   // slice → whether it is of bytes
	whole bool              // the kernel processes whole vectors only: no rest
	tail  bool              // the body being written is the masked rest

	slices  []string    // in order
	renamed map[int]int // for NEON: which registers hold others at present
}

var pointers = []string{"DI", "SI", "DX", "BX", "R8", "R9"}

var neonPointers = []string{"R0", "R1", "R2", "R3", "R4", "R5"}

// tailMask is the register that holds the AVX2 mask of the rest; AVX-512 uses K1.
const tailMask = 15

// kernel starts the function name on slices, of which the first gives the length, and further parameters. Slices are
// of float32, of bfloat16 if their name ends in ":bf16", of float16 if it ends in ":f16", of bytes if it ends in
// ":u8", or of 32-bit words if it ends in ":u32". With ":pairs" a slice is of bfloat16, two per lane.
func (s *isa) kernel(f *asmgen.File, name, doc string, slices []string, more, result string) *kernel {
	k := &kernel{
		isa: s, base: map[string]string{}, bf16: map[string]bool{}, f16: map[string]bool{}, u8: map[string]bool{},
	}
	var params []string
	pointers := pointers
	if s.neon() {
		pointers = neonPointers
	}
	for i, p := range slices {
		p, format, _ := strings.Cut(p, ":")
		slices[i], k.base[p], k.bf16[p], k.f16[p] = p, pointers[i], format == "bf16", format == "f16"
		k.u8[p] = format == "u8"
		params = append(params, p+map[string]string{"": " []float32", "bf16": " []bfloat16", "f16": " []float16",
			"u8": " []byte", "u32": " []uint32", "pairs": " []bfloat16"}[format])
	}
	if more != "" {
		params = append(params, more)
	}
	k.slices = slices
	k.Func = f.FuncOf(name+s.name, doc, strings.Join(params, ", "), result)
	for _, p := range slices {
		k.Arg(p+"_base", k.base[p])
	}
	if k.neon() {
		k.I("MOVD $·lanes(SB), %s", neonLanes)
	}
	k.restart(slices[0])
	return k
}

// restart resets the loop to the beginning of rows as long as the slice.
func (k *kernel) restart(slice string) {
	if k.neon() {
		k.Arg(slice+"_len", neonLeft)
		k.I("MOVD ZR, %s", neonDone)
		return
	}
	k.Arg(slice+"_len", "CX")
	k.I("XORQ AX, AX")
}

// loop writes body for every vector of the rows. body gets the index u of the vector within an iteration, which
// selects its registers. It is written once per unrolled vector, once for single vectors and, unless whole, once for
// the rest.
func (k *kernel) loop(unroll int, body func(u int)) {
	if k.neon() {
		k.neonLoop(unroll, body)
		return
	}
	single, rest, done := k.NewLabel("single"), k.NewLabel("rest"), k.NewLabel("done")
	round := func(n int, next string) {
		again := k.NewLabel("loop")
		k.Label(again)
		k.I("CMPQ CX, $%d", n*k.lanes)
		k.I("JLT %s", next)
		for u := range n {
			body(u)
		}
		k.I("ADDQ $%d, AX", n*k.lanes)
		k.I("SUBQ $%d, CX", n*k.lanes)
		k.I("JMP %s", again)
	}
	if unroll > 1 {
		round(unroll, single)
		k.Label(single)
	}
	round(1, rest)
	k.Label(rest)
	if k.whole {
		return
	}
	k.I("TESTQ CX, CX")
	k.I("JZ %s", done)
	if k.wide() {
		k.I("MOVL $1, R10")
		k.I("SHLL CX, R10")
		k.I("DECL R10")
		k.I("KMOVW R10, K1")
	} else {
		k.I("LEAQ ·firstLanes+32(SB), R10")
		k.I("SHLQ $2, CX")
		k.I("SUBQ CX, R10")
		k.I("VMOVDQU (R10), Y%d", tailMask)
	}
	k.tail = true
	body(0)
	k.tail = false
	k.Label(done)
}

// at returns the address of vector u of a slice.
func (k *kernel) at(slice string, u int) string {
	size := k.size(slice)
	return fmt.Sprintf("%d(%s)(AX*%d)", size*k.lanes*u, k.base[slice], size)
}

// size returns the bytes of an element of a slice.
func (k *kernel) size(slice string) int {
	switch {
	case k.u8[slice]:
		return 1
	case k.bf16[slice] || k.f16[slice]:
		return 2
	}
	return 4
}

// ahead prefetches some iterations ahead of vector u of the slices. Rows are short and hardware prefetching stops at
// every page, so a kernel on rows in memory would wait: prefetching halves the time of SwiGLU. For consecutive rows
// the distance reaches into the next row.
func (k *kernel) ahead(u int, slices ...string) {
	const distance, line = 2048, 64
	for _, slice := range slices {
		size := k.size(slice)
		if at := size * k.lanes * u; at%line == 0 && !k.tail {
			if k.neon() {
				k.I("PRFM %d(%s), PLDL1KEEP", at+distance, k.current(slice))
				continue
			}
			k.I("PREFETCHT0 %d(%s)(AX*%d)", at+distance, k.base[slice], size)
		}
	}
}

// load reads vector u of a slice as float32; lanes past its end are 0.
func (k *kernel) load(slice string, u, dst int) {
	switch {
	case k.neon():
		k.neonLoad(slice, u, dst)
	case k.bf16[slice]:
		k.loadBF16(k.at(slice, u), dst)
	case k.f16[slice]:
		k.loadF16(k.at(slice, u), dst)
	case !k.tail:
		k.I("VMOVUPS %s, %s", k.at(slice, u), k.reg(dst))
	case k.wide():
		k.I("VMOVUPS.Z %s, K1, %s", k.at(slice, u), k.reg(dst))
	default:
		k.I("VMASKMOVPS %s, Y%d, %s", k.at(slice, u), tailMask, k.reg(dst))
	}
}

// store writes vector u of a slice, only the lanes before its end. For a slice of bfloat16, call round first.
func (k *kernel) store(src int, slice string, u int) {
	switch {
	case k.neon():
		k.neonStore(src, slice, u)
	case k.bf16[slice]:
		k.storeBF16(src, k.at(slice, u))
	case k.f16[slice]:
		k.storeF16(src, k.at(slice, u))
	case !k.tail:
		k.I("VMOVUPS %s, %s", k.reg(src), k.at(slice, u))
	case k.wide():
		k.I("VMOVUPS %s, K1, %s", k.reg(src), k.at(slice, u))
	default:
		k.I("VMASKMOVPS %s, Y%d, %s", k.reg(src), tailMask, k.at(slice, u))
	}
}

// keep zeroes the lanes of register r past the end, in the rest.
func (k *kernel) keep(r int) {
	switch {
	case !k.tail:
	case k.neon():
		k.V("fmov", k.real(r), k.real(r))
	case k.wide():
		k.I("VMOVAPS.Z %[1]s, K1, %[1]s", k.reg(r))
	default:
		k.I("VANDPS Y%d, %[2]s, %[2]s", tailMask, k.reg(r))
	}
}

// op writes an instruction on full registers in the assembler's order, with the destination last.
func (k *kernel) op(name string, regs ...int) {
	if k.neon() {
		k.neonOp(name, regs...)
		return
	}
	line := name
	for i, r := range regs {
		if i > 0 {
			line += ","
		}
		line += " " + k.reg(r)
	}
	k.I("%s", line)
}

// broadcast sets all lanes of register r to a float32 parameter.
func (k *kernel) broadcast(param string, r int) {
	if k.neon() {
		k.I("FMOVS %s, F%d", k.ArgRef(param), r)
		k.VSplat(r, r, 0)
		return
	}
	k.I("VBROADCASTSS %s, %s", k.ArgRef(param), k.reg(r))
}

// zero clears registers [from, from+n).
func (k *kernel) zero(from, n int) {
	for r := from; r < from+n; r++ {
		k.op("VXORPS", r, r, r)
	}
}

// fold combines registers from … from+n−1 (n a power of two) into the first, pairwise.
func (k *kernel) fold(op string, from, n int) {
	for step := 1; step < n; step *= 2 {
		for r := from; r+step < from+n; r += 2 * step {
			k.op(op, r+step, r, r)
		}
	}
}

// across combines the lanes of float32 (PS), float64 (PD) or integers (D) of register r, halving, and leaves the
// result in its lowest; r+1 is overwritten. op is VADD, VMAX or VPMAXU.
func (k *kernel) across(op, kind string, r int) {
	if k.neon() {
		k.neonAcross(op, kind, r)
		return
	}
	if k.wide() {
		k.I("VEXTRACTF64X4 $1, Z%d, Y%d", r, r+1)
		k.I("%[1]s%[2]s Y%[4]d, Y%[3]d, Y%[3]d", op, kind, r, r+1)
	}
	k.I("VEXTRACTF128 $1, Y%d, X%d", r, r+1)
	k.I("%[1]s%[2]s X%[4]d, X%[3]d, X%[3]d", op, kind, r, r+1)
	k.I("VPERMILPD $1, X%d, X%d", r, r+1)
	k.I("%[1]s%[2]s X%[4]d, X%[3]d, X%[3]d", op, kind, r, r+1)
	if kind != "PD" {
		k.I("VMOVSHDUP X%d, X%d", r, r+1)
		k.I("%[1]s%[2]s X%[4]d, X%[3]d, X%[3]d", op, kind, r, r+1)
	}
}

// ret returns the lowest lane of register r as a float32 (SS) or float64 (SD).
func (k *kernel) ret(kind string, r int) {
	if k.neon() {
		k.I("FMOV%s F%d, %s", kind[1:], r, k.ArgRef("ret"))
		k.Ret()
		return
	}
	k.I("VMOV%s X%d, %s", kind, r, k.ArgRef("ret"))
	k.Ret()
}
