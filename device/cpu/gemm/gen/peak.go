package main

import "anneal/internal/asmgen"

// peak writes a loop of multiplications and additions on registers only: the upper limit of a kernel.
func peak(f *asmgen.File, v vector, sums int) {
	fn := f.Func("peak"+v.name, "multiplies and adds "+v.reg+" registers n times, 4 times each of its sums.", "n int")
	for i := range sums + 2 {
		fn.I("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", v.reg, i)
	}
	fn.Arg("n", "CX")
	loop := fn.NewLabel("loop")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	for range 4 {
		for i := range sums {
			v.fma(fn, sums, sums+1, i)
		}
	}
	fn.I("DECQ CX")
	fn.I("JNZ %s", loop)
	fn.Ret()
}
