// Command gen writes the float32 primitives of package vec in assembly: AVX2, AVX-512 and NEON.
package main

import (
	"fmt"
	"os"
	"strings"

	"anneal/internal/asmgen"
)

func main() {
	for _, set := range []*isa{
		{name: "AVX2", full: "Y", half: "X", lanes: 8},
		{name: "AVX512", full: "Z", half: "Y", lanes: 16},
		{name: "NEON", full: "V", lanes: 4},
	} {
		f := &asmgen.File{Package: "vec", Generator: "gen/main.go", Arch: set.arch()}
		set.elementwise(f)
		set.reductions(f)
		set.elu(f)
		set.exponentials(f)
		set.reluSquared(f, "reluSquared", "")
		set.softcap(f)
		set.gelu(f, "gelu", "")
		set.geluGrad(f, "geluGrad", "")
		set.geGLU(f, "geGLU", "")
		set.geGLUGrad(f, "geGLUGrad", "")
		set.optimizers(f)
		set.codes(f)
		set.adamW8(f)
		set.conversions(f)
		set.stochastic(f)
		set.int8(f)
		set.narrow(f)
		set.gelu(f, "narrowGELU", ":bf16")
		set.geluGrad(f, "narrowGELUGrad", ":bf16")
		set.geGLU(f, "narrowGeGLU", ":bf16")
		set.geGLUGrad(f, "narrowGeGLUGrad", ":bf16")
		set.layerNorm(f)
		set.rotatePairs(f)
		set.f16(f)
		set.fp8(f)
		set.mask(f)
		if err := f.Write(strings.ToLower(set.name)); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
