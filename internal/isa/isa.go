// Package isa is the one place that detects the CPU's instructions and reads ANNEAL_CPU.
//
// It names the tiers of kernels. Choose returns the tier that training uses, Enables answers for a single kernel
// elsewhere, and Require guards the code that turns a tier into kernels.
package isa

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A Tier is a set of kernels for one level of instructions. Higher tiers of an architecture include its lower ones.
type Tier int

// The tiers: portable Go; on amd64 AVX2 to AVX-512 with BF16 dot products and to AMX, whose tiles multiply blocks of
// BF16; on arm64 NEON, which all its CPUs have, NEON with products of small matrices of BF16 (FEAT_BF16), and with
// outer products by matrix units (SME) of 16×16 FP32 sums.
const (
	Generic Tier = iota
	AVX2
	AVX512
	AVX512BF16
	AMX
	NEON
	BF16
	SME

	last = SME
)

var names = [...]string{"generic", "avx2", "avx512", "avx512bf16", "amx", "neon", "bf16", "sme"}

// String returns the tier's name as ANNEAL_CPU spells it.
func (t Tier) String() string { return names[t] }

// Tiers returns every tier that this machine supports, best first.
func Tiers() []Tier {
	var out []Tier
	for t := last; t >= Generic; t-- {
		if runs(t) {
			out = append(out, t)
		}
	}
	return out
}

// Choose returns the tier that ANNEAL_CPU names, or else the fastest one on this machine. An unsupported tier in
// ANNEAL_CPU is an error, never a silent fallback.
//
// The fastest tier is not always the highest. On Intel cores BF16 dot products run at half the rate of FP32 FMA,
// because matrix units provide the BF16 speed. If those units are missing or not granted, the avx512 tier, which
// multiplies BF16 operands by FMA, is about twice as fast. That choice depends only on the CPU's vendor, so it is the
// same in every run.
func Choose() (Tier, error) {
	asked, err := fromEnvironment()
	switch {
	case err != nil:
		return 0, err
	case asked != unset && !runs(asked):
		return 0, &Error{asked.String(), "but this CPU lacks its instructions"}
	case asked != unset:
		return asked, nil
	}
	best := Tiers()[0]
	if best == AVX512BF16 && !fastDot() {
		best = AVX512
	}
	return best, nil
}

// Enables reports whether a kernel that needs the instructions of t may run: this CPU has them, and ANNEAL_CPU, if it
// is set, names t or a higher tier. It is for packages with a single optimised kernel and a portable one. An
// unknown tier in ANNEAL_CPU enables nothing: commands check the variable with Choose.
func Enables(t Tier) bool {
	asked, err := fromEnvironment()
	return err == nil && (asked == unset || t <= asked) && runs(t)
}

// Require panics unless this CPU runs the kernels of t. Code that selects kernels by tier must call it first. It also
// asks the system for permission to use the tiles of AMX; without permission their first instruction ends the process.
func Require(t Tier) {
	if !runs(t) {
		panic(fmt.Sprintf("isa: this CPU does not run %v kernels, but %s", t, list(Tiers())))
	}
}

const unset Tier = -1

// fromEnvironment returns the tier that ANNEAL_CPU names, unset if it is empty.
func fromEnvironment() (Tier, error) {
	want := os.Getenv("ANNEAL_CPU")
	if want == "" {
		return unset, nil
	}
	if t := slices.Index(names[:], want); t >= 0 {
		return Tier(t), nil
	}
	return 0, &Error{want, "which is not a kernel tier"}
}

// Error reports a tier in ANNEAL_CPU that is unknown or unsupported.
type Error struct {
	Want string // the value of ANNEAL_CPU
	Why  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("ANNEAL_CPU=%s, %s\n  this CPU runs: %s\n  try `unset ANNEAL_CPU`", e.Want, e.Why, list(Tiers()))
}

func list(tiers []Tier) string {
	s := make([]string, len(tiers))
	for i, t := range tiers {
		s[i] = t.String()
	}
	return strings.Join(s, ", ")
}
