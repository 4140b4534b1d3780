package isa

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

func runs(t Tier) bool {
	x := &cpu.X86
	switch t {
	case AMX:
		return runs(AVX512BF16) && x.HasAMXTile && x.HasAMXBF16 && tilesGranted()
	case AVX512BF16:
		return runs(AVX512) && x.HasAVX512BF16
	case AVX512:
		return runs(AVX2) && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
	case AVX2:
		return x.HasAVX2 && x.HasFMA && f16c()
	default:
		return t == Generic
	}
}

// fastDot reports whether VDPBF16PS is fast: true on AMD, where it does twice the work of an FMA per cycle.
func fastDot() bool { return authenticAMD() }

// GenuineIntel reports whether Intel made this CPU.
func GenuineIntel() bool { return vendor() == "GenuineIntel" }

func authenticAMD() bool { return vendor() == "AuthenticAMD" }

// vendor returns the 12 letters by which the maker of this CPU is known.
func vendor() string {
	_, b, c, d := cpuid(0, 0)
	var name [12]byte
	binary.LittleEndian.PutUint32(name[:], b)
	binary.LittleEndian.PutUint32(name[4:], d)
	binary.LittleEndian.PutUint32(name[8:], c)
	return string(name[:])
}

// f16c reports whether the CPU converts float16, as every known CPU with AVX2 does.
func f16c() bool {
	_, _, c, _ := cpuid(1, 0)
	return c>>29&1 == 1
}

// cpuid executes the CPUID instruction.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)
