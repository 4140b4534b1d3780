// Package isa names the tiers of CPU kernels, finds the best one this machine can run, and honours ANNEAL_CPU.
package isa

import (
	"fmt"
	"os"
	"strings"
)

// A Tier is a set of kernels written for one level of instructions. Higher tiers include the lower.
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

// Tiers returns every tier this machine can run, best first.
func Tiers() []Tier {
	var out []Tier
	for t := AMX; t >= Generic; t-- {
		if runs(t) {
			out = append(out, t)
		}
	}
	return out
}

// Choose returns the tier to use: the one ANNEAL_CPU names, else the fastest this machine runs. A tier that was asked
// for and cannot run is an error, never a quiet fallback.
//
// The fastest is not always the highest. Where BF16 dot products run at half the rate of FP32 FMA (Intel cores, which
// keep BF16 speed for their matrix units) and those units are missing or not granted, the avx512 tier multiplies BF16
// operands by FMA and is about twice as fast; that choice depends on the CPU's vendor alone, so that it is the same in every run.
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

// Error says that ANNEAL_CPU asks for what cannot be had.
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
