package main

import (
	"os"

	"anneal/internal/isa"
)

// noteKernels prints that training is slow, and why, if only portable kernels run.
func (s *session) noteKernels() {
	if text := kernelsNote(); text != "" {
		s.notef("note: %s", text)
	}
}

// kernelsNote returns the notice about slow kernels, or "" if the kernels are not the portable ones.
func kernelsNote() string {
	tier, err := isa.Choose()
	switch {
	case err != nil || tier != isa.Generic:
		return ""
	case os.Getenv("ANNEAL_CPU") != "":
		return "ANNEAL_CPU=generic: portable kernels, 10 to 40 times slower"
	}
	return "this CPU runs only the portable kernels: training is 10 to 40 times slower.\n" +
		"  Optimised kernels exist for x86-64 CPUs with AVX2, AVX-512 or AMX (Intel Core\n" +
		"  since 2013, AMD Ryzen and EPYC) and for 64-bit Arm."
}
