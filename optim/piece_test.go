package optim

import (
	"bytes"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/nn"
	"anneal/tensor"
)

// An optimizer that treats all elements alike gives a parameter that is updated piece by piece, each piece with a state
// of its own, the bits of one that is updated at once.
func TestPiecesAreUpdatedAsInTheWhole(t *testing.T) {
	const rows, cols, stretch = 100, 1000, device.Stretch
	cuts := []int{0, stretch, 4 * stretch, 5 * stretch, rows * cols}
	for _, o := range []Optimizer{
		SGD{Momentum: 0.9, Nesterov: true}, Adam{0.9, 0.99, 1e-8}, AdamW{0.9, 0.99, 1e-8}, Adam8bit{0.9, 0.99, 1e-8},
		Lion{0.9, 0.99}, AdEMAMix{Beta1: 0.9, Beta2: 0.99, Beta3: 0.999, Alpha: 5, Eps: 1e-8, Ramp: 4},
		&Adam16bit{AdamW: AdamW{0.9, 0.99, 1e-8}, Seed: 1}, ScheduleFree{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Warmup: 2},
		&Sophia{Beta1: 0.9, Beta2: 0.99, Rho: 0.04, Every: 1},
	} {
		dev, err := cpu.New(2)
		if err != nil {
			t.Fatal(err)
		}
		run := func(cuts []int) []byte {
			a, err := tensor.NewArena("test", 8<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			p := nn.Declare("w", nn.Matrix, rows, cols)
			p.Std = 0.1
			p.Allocate(a, tensor.F32, a, tensor.F32)
			p.Init(dev, 1, 0)
			var pieces []*nn.Param
			var states []State
			for i, from := range cuts[1:] {
				pieces = append(pieces, p.Piece(cuts[i], from))
				states = append(states, o.Layout(a, pieces[i]))
			}
			gradient := nn.Declare("g", nn.Matrix, rows, cols)
			gradient.Std, gradient.Value = 1e-3, p.Grad
			for step := 1; step <= 3; step++ {
				gradient.Init(dev, 2, step)
				for i, piece := range pieces {
					o.Update(dev, piece, states[i], Step{T: step, LR: 1e-2, Decay: 0.1, Scale: 0.5}, a)
				}
			}
			return bytes.Clone(p.Value.Raw())
		}
		if !bytes.Equal(run(cuts), run([]int{0, rows * cols})) {
			t.Errorf("%T: pieces differ from the whole", o)
		}
		dev.Close()
	}
}
