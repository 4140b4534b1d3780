package config

// masters refuses FP64 master weights if another technique decides the weights or the device cannot compute them.
func (k *checker) masters() {
	const key = "optimizer.masters"
	c := k.c
	if c.Optimizer.Masters != "f64" {
		return
	}
	for _, other := range []struct {
		wrong     bool
		what, try string
	}{
		{c.Precision == "bf16_sr", "precision = bf16_sr, which has no master weights", "precision = bf16"},
		{c.Precision == "fp64", "precision = fp64, whose weights are FP64 themselves", "precision = fp32"},
		{c.Optimizer.Moments == "bf16", "optimizer.moments = bf16", "optimizer.moments = f32"},
		{c.Device == "cuda", "device = cuda yet", "device = cpu"},
		{c.Memory.Offload.Has(OptimizerState), "memory.offload = optimizer yet", "memory.offload = none"},
		{c.Init.EWC > 0, "init.ewc, which moves the weights apart from their masters", "init.ewc = 0"},
		{c.Parallel.Outer.On(), "parallel.outer.groups, which replaces the weights", "parallel.outer.groups = 0"},
	} {
		if other.wrong && !k.reported(key) {
			k.fault(key, other.try+", or "+key+" = f32", "%s = f64 does not work with %s", key, other.what)
		}
	}
}
