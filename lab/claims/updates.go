package claims

import (
	"math"

	"anneal/device/cpu"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
)

// An updated parameter is one weight with its gradient, on a device, under an optimizer.
type updated struct {
	nn.Param
	dev     *cpu.Device
	rule    optim.Optimizer
	state   optim.State
	arena   *tensor.Arena
	scratch *tensor.Arena
}

// update returns a hidden weight of zeros with an optimizer. Close it.
func update(rule optim.Optimizer, shape ...int) (*updated, error) {
	x := &updated{Param: *nn.Declare("w", nn.Matrix, shape...), rule: rule}
	var err error
	if x.dev, err = cpu.New(1); err != nil {
		return nil, err
	}
	if x.arena, err = tensor.NewArena("claim", 1<<16+64*x.Len()); err != nil {
		return nil, err
	}
	x.Allocate(x.arena, tensor.F32, x.arena, tensor.F32)
	_, need := optim.Measure(rule, []*nn.Param{&x.Param})
	if x.scratch, err = tensor.NewArena("scratch", need); err != nil {
		return nil, err
	}
	x.state = rule.Layout(x.arena, &x.Param)
	return x, nil
}

func (x *updated) close() {
	x.dev.Close()
	x.arena.Close()
	x.scratch.Close()
}

// step applies update t, from 1.
func (x *updated) step(t int, lr, decay float64) {
	x.rule.Update(x.dev, &x.Param, x.state, optim.Step{T: t, LR: lr, Decay: decay, Scale: 1}, x.scratch)
}

// decayed returns how much decay takes off two weights of 1, with small and with large gradients of changing sign.
func decayed(rule optim.Optimizer) (off [2]float64, err error) {
	var ends [2][2]float64
	for i, decay := range []float64{0, 0.1} {
		x, err := update(rule, 1, 2)
		if err != nil {
			return off, err
		}
		defer x.close()
		x.Value.SetFloat64(0, 1)
		x.Value.SetFloat64(1, 1)
		for t := 1; t <= 200; t++ {
			sign := float64(1 - 2*(t%2))
			x.Grad.SetFloat64(0, 0.01*sign)
			x.Grad.SetFloat64(1, 10*sign)
			x.step(t, 1e-3, decay)
		}
		ends[i] = [2]float64{x.Value.Float64(0), x.Value.Float64(1)}
	}
	return [2]float64{ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]}, nil
}

// muonOrders returns how far from orthogonal the tenth update is: that of Muon, and that of Nesterov momentum over
// gradients that are orthogonalised first.
func muonOrders() (muon, last float64, err error) {
	const n, mu = 64, 0.95
	one := func(int, int) float64 { return 1 }
	x, err := update(&optim.Muon{Momentum: mu, Iteration: optim.PolarExpress(), Scale: one}, n, n)
	if err != nil {
		return 0, 0, err
	}
	defer x.close()
	plain, err := update(&optim.Muon{Iteration: optim.PolarExpress(), Scale: one}, n, n)
	if err != nil {
		return 0, 0, err
	}
	defer plain.close()
	rng := tensor.NewRNG(1, tensor.PurposeInit, 0)
	before, momentum, step := make([]float64, n*n), make([]float64, n*n), make([]float64, n*n)
	for t := 1; t <= 10; t++ {
		for i := range n * n {
			g := rng.Normals(uint64(t*n*n + i))[0]
			x.Grad.SetFloat64(i, g)
			plain.Grad.SetFloat64(i, g)
			before[i] = x.Value.Float64(i)
			plain.Value.SetFloat64(i, 0)
		}
		x.step(t, 1, 0)
		plain.step(t, 1, 0) // without momentum: the orthogonalised gradient
		for i := range n * n {
			o := plain.Value.Float64(i)
			momentum[i] = mu*momentum[i] + (1-mu)*o
			step[i] = (1-mu)*o + mu*momentum[i]
			before[i] = x.Value.Float64(i) - before[i]
		}
	}
	return offOrthogonal(before, n), offOrthogonal(step, n), nil
}

// offOrthogonal returns ‖O·Oᵀ/s − I‖/√n of an n×n matrix, with the scale s at which it is nearest to orthogonal.
func offOrthogonal(o []float64, n int) float64 {
	product := make([]float64, n*n)
	var trace, squares float64
	for i := range n {
		for j := range n {
			for k := range n {
				product[i*n+j] += o[i*n+k] * o[j*n+k]
			}
			squares += product[i*n+j] * product[i*n+j]
		}
		trace += product[i*n+i]
	}
	scale := trace / squares // of the least squares
	off := 0.0
	for i := range n {
		for j := range n {
			x := scale * product[i*n+j]
			if i == j {
				x--
			}
			off += x * x
		}
	}
	return math.Sqrt(off / float64(n))
}
