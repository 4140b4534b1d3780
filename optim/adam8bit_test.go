package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"
)

// Ten steps of bitsandbytes (testdata/make_adam8bit.py): weights, scales and codes. Where a moment lies in the middle
// between two codes the last bit of its rounding decides, so that a code may be its neighbour. Where a second moment
// has the smallest code above 0, it may be 0 there, and the weights go other ways: few are left out for that.
func TestAdam8bitMatchesBitsandbytes(t *testing.T) {
	data, err := os.ReadFile("testdata/adam8bit.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Shape                 []int
		Steps, Every          int
		LR, Beta1, Beta2, Eps float64
		WeightDecay           float64 `json:"weight_decay"`
		M, V                  []int
		MScale                []float64 `json:"m_scale"`
		VScale                []float64 `json:"v_scale"`
		Weights               [][]float64
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	n := f.Shape[0] * f.Shape[1]
	start, g := make([]float64, n), make([]float64, n)
	for i := range start {
		start[i] = float64((i*31+7)%101-50) / 400
	}
	sample := func(x *tensor.Tensor) []float64 {
		var some []float64
		for i := 0; i < n; i += f.Every {
			some = append(some, x.Float64(i))
		}
		return some
	}
	for _, tier := range isa.Tiers() {
		x := newParameter(t, tier, tensor.F32, Adam8bit{f.Beta1, f.Beta2, f.Eps}, start, f.Shape...)
		least := map[int]bool{} // samples that had the smallest code above 0
		for step := 1; step <= f.Steps; step++ {
			for i := range g {
				g[i] = math.Ldexp(float64((i*791911+step*1047297)%1000003-500001)/500000, -(i % 9))
				if i >= 512 && i < 768 {
					g[i] = 0
				}
			}
			x.step(g, Step{T: step, LR: f.LR, Decay: f.WeightDecay})
			weights, want := sample(&x.Value), slices.Clone(f.Weights[step-1])
			for i := range least {
				weights[i], want[i] = 0, 0
			}
			near(t, fmt.Sprintf("%v: step %d: weights", tier, step), tensor.Of(weights), want, 1e-5, 1e-6)
			for i := range weights {
				if x.state[2].Raw()[i*f.Every] == 1 {
					least[i] = true
				}
			}
		}
		if len(least) > len(f.M)/10 {
			t.Errorf("%v: %d of %d samples had the smallest second moment", tier, len(least), len(f.M))
		}
		near(t, tier.String()+": scales of m", &x.state[1].Tensor, f.MScale, 1e-5, 0)
		near(t, tier.String()+": scales of v", &x.state[3].Tensor, f.VScale, 1e-5, 0)
		for _, c := range []struct {
			name  string
			codes []byte
			want  []int
		}{{"m", x.state[0].Raw(), f.M}, {"v", x.state[2].Raw(), f.V}} {
			neighbours := 0
			for i, want := range c.want {
				at := i * f.Every
				if at/256 == 2 {
					continue // zeros: the code of nothing is no one's concern
				}
				switch off := int(c.codes[at]) - want; {
				case off == 1 || off == -1:
					neighbours++
				case off != 0:
					t.Errorf("%v: code %d of %s is %d, want %d", tier, at, c.name, c.codes[at], want)
				}
			}
			if neighbours > len(c.want)/50 {
				t.Errorf("%v: %d of %d codes of %s are neighbours of those wanted",
					tier, neighbours, len(c.want), c.name)
			}
		}
		// OPT-28: a block without gradients has weights that only decay, and no NaN.
		for i := 512; i < 768; i++ {
			want := start[i] * math.Pow(1-f.LR*f.WeightDecay, float64(f.Steps))
			if got := x.Value.Float64(i); !(math.Abs(got-want) <= 1e-6) {
				t.Fatalf("%v: weight %d of a block without gradients is %v, want %v", tier, i, got, want)
			}
		}
	}
}

// OPT-25: bitsandbytes' own test. Every step starts from the weights of 32-bit Adam; the updates stay close to it.
func TestAdam8bitStaysCloseToAdamW(t *testing.T) {
	const rows, cols = 64, 128
	rng := tensor.NewRNG(25, tensor.PurposeData, 0)
	normal := func(from uint64, std float64) []float64 {
		x := make([]float64, rows*cols)
		for i := range x {
			x[i] = std * rng.Normals(from + uint64(i))[0]
		}
		return x
	}
	start := normal(0, 0.1)
	exact := newParameter(t, isa.Tiers()[0], tensor.F32, AdamW{0.9, 0.999, 1e-8}, start, rows, cols)
	rounded := newParameter(t, isa.Tiers()[0], tensor.F32, Adam8bit{0.9, 0.999, 1e-8}, start, rows, cols)
	absolute, size := 0.0, 0.0 // means
	for step := 1; step <= 50; step++ {
		g := normal(uint64(step*rows*cols), 0.01)
		exact.step(g, Step{T: step, LR: 1e-3})
		rounded.step(g, Step{T: step, LR: 1e-3})
		for i := range g {
			want := exact.Value.Float64(i)
			off := math.Abs(rounded.Value.Float64(i) - want)
			absolute += off / (50 * rows * cols)
			size += math.Abs(want) / (50 * rows * cols)
		}
		copy(rounded.Value.Raw(), exact.Value.Raw())
	}
	t.Logf("mean error %.3g of weights of mean size %.3g", absolute, size)
	if absolute >= 6e-5 || absolute >= 6e-4*size {
		t.Errorf("mean error %.3g of weights of mean size %.3g; want below 6e-5 and 6e-4 of the size", absolute, size)
	}
}

// Rows whose gradients lie six decades apart share blocks. The second moments of the small ones stay above 0, or their
// next steps would be as large as those of the first step.
func TestAdam8bitKeepsSmallSecondMoments(t *testing.T) {
	const rows, cols, steps = 64, 128, 100
	rng := tensor.NewRNG(26, tensor.PurposeData, 0)
	start := make([]float64, rows*cols)
	exact := newParameter(t, isa.Tiers()[0], tensor.F32, AdamW{0.9, 0.999, 1e-8}, start, rows, cols)
	rounded := newParameter(t, isa.Tiers()[0], tensor.F32, Adam8bit{0.9, 0.999, 1e-8}, start, rows, cols)
	g := make([]float64, rows*cols)
	for step := 1; step <= steps; step++ {
		for i := range g {
			g[i] = math.Pow(10, -float64(i%7)) * rng.Normals(uint64(step*rows*cols + i))[0]
		}
		exact.step(g, Step{T: step, LR: 1e-3})
		rounded.step(g, Step{T: step, LR: 1e-3})
	}
	for decade := range 7 {
		moved, want := 0.0, 0.0
		for i := decade; i < rows*cols; i += 7 {
			moved, want = moved+math.Abs(rounded.Value.Float64(i)), want+math.Abs(exact.Value.Float64(i))
		}
		if moved > 1.5*want {
			t.Errorf("gradients of 1e-%d move weights %.1f times as far as with 32 bits", decade, moved/want)
		}
	}
}

// What is small, or not a hidden matrix, keeps 32 bits.
func TestAdam8bitRoundsLargeMatricesOnly(t *testing.T) {
	for _, c := range []struct {
		role nn.Role
		rows int
		want tensor.DType
	}{
		{nn.Matrix, 64, tensor.U8}, {nn.Matrix, 63, tensor.F32}, {nn.Embedding, 64, tensor.F32},
		{nn.Head, 64, tensor.F32}, {nn.Norm, 64, tensor.F32}, {nn.Bias, 64, tensor.F32},
	} {
		p := nn.Declare("w", c.role, c.rows, 64)
		p.Allocate(tensor.NewMeasure("weights"), tensor.F32, nil, tensor.F32)
		if got := (Adam8bit{}).Layout(tensor.NewMeasure("state"), p)[0].DType(); got != c.want {
			t.Errorf("%v [%d 64]: the first moment is %v, want %v", c.role, c.rows, got, c.want)
		}
	}
}
