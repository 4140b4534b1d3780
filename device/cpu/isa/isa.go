// Package isa names the tiers of CPU kernels, chooses the best one for this machine, and reads ANNEAL_CPU.
package isa

import (
	"fmt"
	"os"
	"strings"
)

// A Tier is a set of kernels for one level of instructions. Higher tiers include the lower ones.
type Tier int

// The tiers, from portable Go to AVX-512 with BF16 dot products and to AMX, whose tiles multiply blocks of BF16.
const (
	Generic Tier = iota
	AVX2
	AVX512
	AVX512BF16
	AMX
)

var names = [...]string{"generic", "avx2", "avx512", "avx512bf16", "amx"}

// String returns the tier's name as ANNEAL_CPU spells it.
func (t Tier) String() string { return names[t] }

// Tiers returns every tier that this machine supports, best first.
func Tiers() []Tier {
	var out []Tier
	for t := AMX; t >= Generic; t-- {
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
	want := os.Getenv("ANNEAL_CPU")
	if want == "" {
		best := Tiers()[0]
		if best == AVX512BF16 && !fastDot() {
			best = AVX512
		}
		return best, nil
	}
	for t, name := range names {
		if name != want {
			continue
		}
		if !runs(Tier(t)) {
			return 0, &Error{want, "but this CPU lacks its instructions"}
		}
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
