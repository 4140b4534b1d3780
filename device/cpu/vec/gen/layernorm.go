package main

import "anneal/internal/asmgen"

// layerNorm writes the primitives of LayerNorm; see layernorm.go of package vec.
func (s *isa) layerNorm(f *asmgen.File) {
	k := s.kernel(f, "centre", "is dst = a·(x − mean).", []string{"dst", "x"}, "mean float32, a float32", "")
	k.broadcast("mean", 8)
	k.broadcast("a", 9)
	k.loop(4, func(u int) {
		k.load("x", u, u)
		k.op("VSUBPS", 8, u, u)
		k.op("VMULPS", 9, u, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "narrowLayerNorm", "is xhat = r·(x − mean), y = xhat·gain + bias.",
		[]string{"y:bf16", "xhat:bf16", "x", "gain", "bias"}, "mean float32, r float32", "")
	k.useBF16()
	k.broadcast("mean", 10)
	k.broadcast("r", 11)
	k.loop(2, func(u int) {
		x, c := 2*u, 2*u+1
		k.load("x", u, x)
		k.op("VSUBPS", 10, x, x)
		k.op("VMULPS", 11, x, x)
		k.round(x, "xhat")
		k.store(x, "xhat", u)
		k.upper(x)
		k.gainAndBias(x, c, u)
	})
	k.Ret()

	k = s.kernel(f, "narrowLayerNormAgain",
		"is y = xhat·gain + bias.", []string{"y:bf16", "xhat:bf16", "gain", "bias"}, "", "")
	k.useBF16()
	k.loop(2, func(u int) {
		x, c := 2*u, 2*u+1
		k.ahead(u, "xhat")
		k.load("xhat", u, x)
		k.gainAndBias(x, c, u)
	})
	k.Ret()

	k = s.kernel(f, "narrowLayerNormDot", "is dgain += dy·xhat, dbias += dy, sums = Σ gain·dy, Σ gain·dy·xhat.",
		[]string{"dgain", "dbias", "dy:bf16", "xhat:bf16", "gain"}, "sums *[2]float32", "")
	k.useBF16()
	k.zero(0, 4) // two of each sum
	k.loop(2, func(u int) {
		dy, xhat, x := 4+3*u, 5+3*u, 6+3*u
		k.ahead(u, "dy", "xhat")
		k.load("dy", u, dy)
		k.load("xhat", u, xhat)
		k.load("dgain", u, x)
		k.op("VFMADD231PS", dy, xhat, x)
		k.store(x, "dgain", u)
		k.load("dbias", u, x)
		k.op("VADDPS", dy, x, x)
		k.store(x, "dbias", u)
		k.load("gain", u, x)
		k.op("VMULPS", dy, x, x)
		k.op("VADDPS", x, u, u)
		k.op("VFMADD231PS", x, xhat, 2+u)
	})
	k.fold("VADDPS", 0, 2)
	k.fold("VADDPS", 2, 2)
	k.across("VADD", "PS", 0)
	k.across("VADD", "PS", 2)
	if k.neon() {
		k.Arg("sums", neonStruct)
		k.VStore(0, 4, 0, neonStruct)
		k.VStore(2, 4, 4, neonStruct)
	} else {
		k.Arg("sums", "R11")
		k.I("VMOVSS X0, (R11)")
		k.I("VMOVSS X2, 4(R11)")
	}
	k.Ret()

	k = s.kernel(f, "narrowLayerNormGrad", "is dx += r·(gain·dy − dot·xhat − mean).",
		[]string{"dx", "dy:bf16", "xhat:bf16", "gain"}, "r float32, mean float32, dot float32", "")
	k.useBF16()
	k.broadcast("r", 9)
	k.broadcast("mean", 10)
	k.broadcast("dot", 11)
	k.loop(2, func(u int) {
		dy, xhat, gain, dx := 4*u, 4*u+1, 4*u+2, 4*u+3
		k.ahead(u, "dx")
		k.load("dy", u, dy)
		k.load("xhat", u, xhat)
		k.load("gain", u, gain)
		k.load("dx", u, dx)
		k.op("VMULPS", gain, dy, dy)
		k.op("VFNMADD231PS", 11, xhat, dy)
		k.op("VSUBPS", 10, dy, dy)
		k.op("VFMADD231PS", 9, dy, dx)
		k.store(dx, "dx", u)
	})
	k.Ret()

	k = s.kernel(f, "narrowAdd", "is dst += x.", []string{"dst", "x:bf16"}, "", "")
	k.useBF16()
	k.loop(4, func(u int) {
		k.ahead(u, "x")
		k.load("x", u, u)
		k.load("dst", u, u+4)
		k.op("VADDPS", u+4, u, u)
		k.store(u, "dst", u)
	})
	k.Ret()
}

// gainAndBias finishes a vector of LayerNorm: y = xhat·gain + bias, with xhat in register x.
func (k *kernel) gainAndBias(x, c, u int) {
	k.load("gain", u, c)
	k.op("VMULPS", c, x, x)
	k.load("bias", u, c)
	k.op("VADDPS", c, x, x)
	k.round(x, "y")
	k.store(x, "y", u)
}
