package config

import "fmt"

// recompute checks that the model has enough layers for the strategy of memory.recompute.
func (k *checker) recompute() {
	const key = "memory.recompute"
	r, layers := k.c.Memory.Recompute, k.c.Model.Layers
	if r.Segment() >= layers && r.Segment() > 1 && layers > 0 {
		try, all := key+" = every_layer", "the only layer"
		if layers > 1 {
			all = fmt.Sprintf("all %d layers", layers)
		}
		if layers > 2 {
			try += fmt.Sprintf(", or every:N with N below model.layers = %d", layers)
		}
		k.fault(key, try, "%s = %s makes one segment of %s, which saves no memory", key, r, all)
	}
	if k.c.Memory.RecomputeInputs == "bf16" && !r.Rerun() {
		k.fault("memory.recompute_inputs", "memory.recompute = every_layer, every:N or sqrt",
			"memory.recompute_inputs = bf16 does not work with memory.recompute = %s: it rounds what whole segments "+
				"keep, and which those are must be given", r)
	}
}
