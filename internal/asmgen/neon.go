package asmgen

import (
	"fmt"
	"strconv"
	"strings"
)

// The Go assembler lacks most vector instructions of arm64, so all of them are written as words, with the GNU
// assembler's text as a comment: `WORD $0x4e22d420 // fadd v0.4s, v1.4s, v2.4s`. Vector registers are numbers 0–31,
// and unlike in Go's assembly the destination comes first, as in Arm's manuals. General registers have Go's names.
// R18 belongs to the system on macOS and Windows, R27 to the assembler and R28 to the goroutine.

// A form is the encoding of an instruction with registers 0, and its operands: the letters d, n and m stand for
// registers.
type form struct {
	word     uint32
	operands string
}

const (
	ddd4s  = "vd.4s, vn.4s, vm.4s"
	dd4s   = "vd.4s, vn.4s"
	ddd8h  = "vd.8h, vn.8h, vm.8h"
	ddd16b = "vd.16b, vn.16b, vm.16b"
)

// forms holds the instructions on registers only, by mnemonic; where one mnemonic has several element sizes, a suffix
// tells them apart and is not part of the text.
var forms = map[string]form{
	"fadd": {0x4e20d400, ddd4s}, "fsub": {0x4ea0d400, ddd4s}, "fmul": {0x6e20dc00, ddd4s}, "fdiv": {0x6e20fc00, ddd4s},
	"fmax": {0x4e20f400, ddd4s}, "fmin": {0x4ea0f400, ddd4s}, "fmla": {0x4e20cc00, ddd4s}, "fmls": {0x4ea0cc00, ddd4s},
	"fcmeq": {0x4e20e400, ddd4s}, "fcmge": {0x6e20e400, ddd4s}, "fcmgt": {0x6ea0e400, ddd4s},
	"faddp": {0x6e20d400, ddd4s},
	"fneg":  {0x6ea0f800, dd4s}, "fabs": {0x4ea0f800, dd4s}, "fsqrt": {0x6ea1f800, dd4s}, "frintn": {0x4e218800, dd4s},
	"fcvtns": {0x4e21a800, dd4s}, "scvtf": {0x4e21d800, dd4s},

	"fadd.2d": {0x4e60d400, "vd.2d, vn.2d, vm.2d"}, "fmla.2d": {0x4e60cc00, "vd.2d, vn.2d, vm.2d"},
	"fcvtl.2d": {0x0e617800, "vd.2d, vn.2s"}, "fcvtl2.2d": {0x4e617800, "vd.2d, vn.4s"},
	"fcvtl.4s": {0x0e217800, "vd.4s, vn.4h"}, "fcvtn.4h": {0x0e216800, "vd.4h, vn.4s"},
	"fcvtl2.4s": {0x4e217800, "vd.4s, vn.8h"}, "fcvtn2.8h": {0x4e216800, "vd.8h, vn.4s"},
	"faddp.s": {0x7e30d800, "sd, vn.2s"}, "faddp.d": {0x7e70d800, "dd, vn.2d"}, "fmaxv": {0x6e30f800, "sd, vn.4s"},

	"add": {0x4ea08400, ddd4s}, "sub": {0x6ea08400, ddd4s}, "umax": {0x6ea06400, ddd4s}, "smin": {0x4ea06c00, ddd4s},
	"cmgt": {0x4ea03400, ddd4s}, "umaxv": {0x6eb0a800, "sd, vn.4s"},
	"mul": {0x4ea09c00, ddd4s}, "umin": {0x6ea06c00, ddd4s},
	"add.16b": {0x4e208400, ddd16b}, "sub.16b": {0x6e208400, ddd16b}, "addp.16b": {0x4e20bc00, ddd16b},
	"cmeq.16b": {0x6e208c00, ddd16b}, "cmhs.16b": {0x6e203c00, ddd16b},
	"umull": {0x2ea0c000, "vd.2d, vn.2s, vm.2s"}, "umull2": {0x6ea0c000, "vd.2d, vn.4s, vm.4s"},

	"and": {0x4e201c00, ddd16b}, "bic": {0x4e601c00, ddd16b}, "orr": {0x4ea01c00, ddd16b}, "eor": {0x6e201c00, ddd16b},
	"bit": {0x6ea01c00, ddd16b}, "bif": {0x6ee01c00, ddd16b},

	"zip1": {0x4e803800, ddd4s}, "zip2": {0x4e807800, ddd4s}, "uzp1": {0x4e801800, ddd4s}, "uzp2": {0x4e805800, ddd4s},
	"zip1.2d": {0x4ec03800, "vd.2d, vn.2d, vm.2d"}, "zip2.2d": {0x4ec07800, "vd.2d, vn.2d, vm.2d"},
	"zip1.8h": {0x4e403800, ddd8h}, "zip2.8h": {0x4e407800, ddd8h}, "uzp2.8h": {0x4e405800, ddd8h},
	"bfmmla": {0x6e40ec00, "vd.4s, vn.8h, vm.8h"},
	"bfcvtn": {0x0ea16800, "vd.4h, vn.4s"}, "bfcvtn2": {0x4ea16800, "vd.8h, vn.4s"},
	"xtn.4h": {0x0e612800, "vd.4h, vn.4s"}, "xtn.8b": {0x0e212800, "vd.8b, vn.8h"},
	"sxtl.4s": {0x0f10a400, "vd.4s, vn.4h"}, "sxtl.8h": {0x0f08a400, "vd.8h, vn.8b"},
	"fmov": {0x1e204000, "sd, sn"}, // clears the other lanes
}

// V writes an instruction of forms on vector registers: the destination, then the sources.
func (fn *Func) V(name string, regs ...int) {
	f, ok := forms[name]
	if !ok {
		panic("asmgen: no instruction " + name)
	}
	word, text := f.word, f.operands
	if len(regs) != strings.Count(text, ",")+1 {
		panic(fmt.Sprintf("asmgen: %s has the operands %s, not %v", name, text, regs))
	}
	for i, r := range regs {
		word |= uint32(r) << []int{0, 5, 16}[i]
	}
	mnemonic, _, _ := strings.Cut(name, ".")
	fn.word(word, "%s %s", mnemonic, numbered(text, regs))
}

// numbered replaces the letters of operands, each after the letter of its kind of register, by numbers.
func numbered(operands string, regs []int) string {
	fields := strings.Split(operands, ", ")
	for i, f := range fields {
		fields[i] = f[:1] + strconv.Itoa(regs[i]) + f[2:]
	}
	return strings.Join(fields, ", ")
}

// VCopy copies a register.
func (fn *Func) VCopy(d, n int) {
	fn.word(0x4ea01c00|uint32(d|n<<5|n<<16), "mov v%d.16b, v%d.16b", d, n)
}

// VClear clears a register.
func (fn *Func) VClear(d int) { fn.word(0x4f000400|uint32(d), "movi v%d.4s, #0", d) }

// VBytes sets all bytes of a register.
func (fn *Func) VBytes(d int, c byte) {
	fn.word(0x4f00e400|uint32(d)|uint32(c>>5)<<16|uint32(c&31)<<5, "movi v%d.16b, #%#x", d, c)
}

// VLane writes an instruction on four lanes of 32 bits whose last operand is lane l of register m: fmla, fmul or mla.
func (fn *Func) VLane(name string, d, n, m, l int) {
	word := map[string]uint32{"fmla": 0x4f801000, "fmul": 0x4f809000, "mla": 0x6f800000}[name]
	fn.word(word|uint32(d|n<<5|m<<16|l&1<<21|l>>1<<11), "%s v%d.4s, v%d.4s, v%d.s[%d]", name, d, n, m, l)
}

// VShift writes a shift by an immediate: shl, sshr, ushr and usra on four lanes of 32 bits; shrn narrows four lanes
// to the lower half of d; shll and shll2 widen the lower and upper half of n, by 16 only.
func (fn *Func) VShift(name string, d, n, bits int) {
	word, field, operands, ok := uint32(0), 0, dd4s, 0 < bits && bits < 32
	switch name {
	case "shl":
		word, field = 0x4f005400, 32+bits
	case "sshr":
		word, field = 0x4f000400, 64-bits
	case "ushr":
		word, field = 0x6f000400, 64-bits
	case "usra":
		word, field = 0x6f001400, 64-bits
	case "shrn":
		word, field, operands, ok = 0x0f008400, 32-bits, "vd.4h, vn.4s", 0 < bits && bits <= 16
	case "shll":
		word, operands, ok = 0x2e613800, "vd.4s, vn.4h", bits == 16
	case "shll2":
		word, operands, ok = 0x6e613800, "vd.4s, vn.8h", bits == 16
	default:
		ok = false
	}
	if !ok {
		panic(fmt.Sprintf("asmgen: no encoding of %s by %d", name, bits))
	}
	fn.word(word|uint32(d|n<<5|field<<16), "%s %s, #%d", name, numbered(operands, []int{d, n}), bits)
}

// VSplat sets all lanes of d to lane l of n; VInsert sets one lane of d to lane from of n.
func (fn *Func) VSplat(d, n, l int) {
	fn.word(0x4e000400|uint32(d|n<<5|(l<<3|4)<<16), "dup v%d.4s, v%d.s[%d]", d, n, l)
}

func (fn *Func) VInsert(d, lane, n, from int) {
	fn.word(0x6e000400|uint32(d|n<<5|(lane<<3|4)<<16|from<<13), "mov v%d.s[%d], v%d.s[%d]", d, lane, n, from)
}

// VSplatOf sets all lanes of d to a general register.
func (fn *Func) VSplatOf(d int, reg string) {
	fn.word(0x4e040c00|uint32(d|xreg(reg)<<5), "dup v%d.4s, w%d", d, xreg(reg))
}

// VLoad and VStore move the lower bytes of a register, as many as size says, at offset from a general register; a load
// clears the rest. VLoadAt adds a second register instead.
func (fn *Func) VLoad(v, size, offset int, base string) {
	fn.move("ldr", 0x400000, v, size, offset, base)
}

func (fn *Func) VStore(v, size, offset int, base string) { fn.move("str", 0, v, size, offset, base) }

func (fn *Func) move(name string, load uint32, v, size, offset int, base string) {
	word, letter := sized(size)
	at := fmt.Sprintf("[x%d, #%d]", xreg(base), offset)
	if offset == 0 {
		at = fmt.Sprintf("[x%d]", xreg(base))
	}
	if offset < 0 || offset%size != 0 || offset/size > 4095 {
		panic(fmt.Sprintf("asmgen: no encoding of %s %d(%s)", name, offset, base))
	}
	fn.word(word|load|uint32(v|xreg(base)<<5|offset/size<<10), "%s %s%d, %s", name, letter, v, at)
}

func (fn *Func) VLoadAt(v, size int, base, index string) {
	word, letter := sized(size)
	b, x := xreg(base), xreg(index)
	fn.word(word&^0x01000000|0x606800|uint32(v|b<<5|x<<16), "ldr %s%d, [x%d, x%d]", letter, v, b, x)
}

// sized returns the encoding of a store with offset 0, and the register letter, for a size in bytes.
func sized(size int) (word uint32, letter string) {
	switch size {
	case 1:
		return 0x3d000000, "b"
	case 2:
		return 0x7d000000, "h"
	case 4:
		return 0xbd000000, "s"
	case 8:
		return 0xfd000000, "d"
	case 16:
		return 0x3d800000, "q"
	}
	panic(fmt.Sprintf("asmgen: no register of %d bytes", size))
}

// VLoadPair and VStorePair move two registers of 16 bytes to or from 32 consecutive bytes.
func (fn *Func) VLoadPair(v, w, offset int, base string) {
	fn.pair("ldp", 0xad400000, v, w, offset, base)
}

func (fn *Func) VStorePair(v, w, offset int, base string) {
	fn.pair("stp", 0xad000000, v, w, offset, base)
}

func (fn *Func) pair(name string, word uint32, v, w, offset int, base string) {
	if offset%16 != 0 || offset < -1024 || offset > 1008 {
		panic(fmt.Sprintf("asmgen: no encoding of %s %d(%s)", name, offset, base))
	}
	at := fmt.Sprintf("[x%d, #%d]", xreg(base), offset)
	if offset == 0 {
		at = fmt.Sprintf("[x%d]", xreg(base))
	}
	fn.word(word|uint32(v|w<<10|xreg(base)<<5|offset/16&0x7f<<15), "%s q%d, q%d, %s", name, v, w, at)
}

func (fn *Func) word(word uint32, format string, args ...any) {
	fn.I("WORD $0x%08x // %s", word, fmt.Sprintf(format, args...))
}

// xreg returns the number of a general register of arm64.
func xreg(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "R"))
	if err != nil || n < 0 || n > 30 || n == 18 || n == 27 || n == 28 {
		panic(fmt.Sprintf("asmgen: %q is no general register for kernels", name))
	}
	return n
}
