package config

import "fmt"

// mesh checks the axes of the mesh of ranks beside data parallelism, as far as shapes decide.
func (k *checker) mesh() {
	p, m := &k.c.Parallel, &k.c.Model
	tensor := k.between("parallel.tensor", p.Tensor, 1, 1<<10)
	context := k.between("parallel.context", p.Context, 1, 1<<10)
	pipeline := k.between("parallel.pipeline", p.Pipeline, 1, 1<<10)
	if !tensor || !context || !pipeline || p.Shared() == 1 {
		return
	}
	if n := p.Shared(); p.Ranks%n != 0 {
		k.fault("parallel.ranks", fmt.Sprintf("parallel.ranks = %d", (p.Ranks/n+1)*n),
			"parallel.ranks = %d is not a multiple of parallel.tensor · parallel.context · parallel.pipeline = %d",
			p.Ranks, n)
	}
	if p.Tensor > 1 {
		k.divides("parallel.tensor", p.Tensor, "model.heads", m.Heads)
		k.divides("parallel.tensor", p.Tensor, "model.ffn", m.FFN)
		if m.KVHeads%p.Tensor != 0 && p.Tensor%max(m.KVHeads, 1) != 0 {
			k.fault("parallel.tensor", "a number that divides it, or that it divides",
				"parallel.tensor = %d and model.kv_heads = %d: neither divides the other", p.Tensor, m.KVHeads)
		}
	}
	if p.Context > 1 {
		k.divides("parallel.context", 2*p.Context, "model.context", m.Context)
	}
	if p.Pipeline > m.Layers {
		k.fault("parallel.pipeline", fmt.Sprintf("parallel.pipeline = %d or less", m.Layers),
			"parallel.pipeline = %d, but the model has %d layers: each stage needs one", p.Pipeline, m.Layers)
	}
	if p.Outer.On() {
		k.fault("parallel.outer.groups", "parallel.outer.groups = 0",
			"parallel.outer.groups = %d does not work with parallel.tensor, context or pipeline yet", p.Outer.Groups)
	}
}

// divides checks that a size of the mesh divides one of the model.
func (k *checker) divides(key string, n int, what string, size int) {
	if size%n != 0 {
		k.fault(key, "a number that divides it", "%s: %d does not divide %s = %d", key, n, what, size)
	}
}
