package optim

import (
	"fmt"
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"
)

var scales = map[string]func(rows, cols int) float64{
	"match_rms": MatchRMS, "jordan": JordanScale, "spectral_mup": SpectralScale,
}

// muonFixture is ten steps each of torch.optim.Muon, of the original Muon and of NorMuon (testdata/make_muon.py).
type muonFixture struct {
	LR, Momentum float64
	WeightDecay  float64 `json:"weight_decay"`
	Sets         []struct {
		Name, Scale string
		NorMuon     bool
		Rows, Cols  int
		Start       []float64
		Gradients   [][]float64 // [step][element]
		Weights     [][]float64 // after each step
		Momentum    []float64   // after the last
	}
}

func TestMuonMatchesTheOriginals(t *testing.T) {
	var f muonFixture
	loadJSON(t, "testdata/muon.json", &f)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		for _, c := range f.Sets {
			relative, absolute := 1e-10, 1e-12
			switch {
			case dtype == tensor.F32:
				relative, absolute = 1e-5, 2e-6
			case c.Name == "keller-jordan" || c.NorMuon: // they add 1e-7 to the norm
				relative, absolute = 1e-6, 1e-7
			}
			o := &Muon{Momentum: f.Momentum, Iteration: Jordan(), Scale: scales[c.Scale]}
			if c.NorMuon {
				o.RowBeta = 0.95
			}
			x := newParameter(t, tier, dtype, o, c.Start, c.Rows, c.Cols)
			for step, g := range c.Gradients {
				x.step(g, Step{T: step + 1, LR: f.LR, Decay: f.WeightDecay})
				near(t, fmt.Sprintf("%s %dx%d: step %d: weights", c.Name, c.Rows, c.Cols, step+1), &x.Value,
					c.Weights[step], relative, absolute)
			}
			near(t, c.Name+": momentum", &x.state[0].Tensor, c.Momentum, relative, absolute)
		}
	})
}

// OPT-14: three steps of the reference block, in the two scalings.
func TestMuonMatchesTheReferenceBlock(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		tolerance := map[tensor.DType]float64{tensor.F64: 1e-7, tensor.F32: 2e-6}[dtype] // it adds 1e-7 to the norm
		for name, want := range map[string][]float64{
			"jordan": {.516609981849, -1.017139370944, 1.950114808512, -.252172413696, 1.501571190874,
				-2.976884565894},
			"match_rms": {.503797015904, -1.002023551075, 1.974891860397, -.249774120884, 1.494673724712,
				-2.980251475193},
		} {
			o := &Muon{Momentum: 0.95, Iteration: Jordan(), Scale: scales[name]}
			x := newParameter(t, tier, dtype, o, []float64{.5, -1, 2, -.25, 1.5, -3}, 2, 3)
			for i, g := range [][]float64{
				{.1, -.2, .3, .4, -.5, .6}, {-.3, .1, .2, -.6, .05, 0}, {.02, .4, -.1, .3, .7, -.9},
			} {
				x.step(g, Step{T: i + 1, LR: 0.02, Decay: 0.1})
			}
			near(t, name, &x.Value, want, 0, tolerance)
		}
	})
}

// OPT-17: the momentum of Moonlight, buf = μ·buf + g and u = g + μ·buf, is 1/(1−μ) times ours, and so leads to the
// same steps.
func TestMuonDoesNotDependOnTheFormOfMomentum(t *testing.T) {
	const rows, cols, mu = 6, 9, 0.95
	x := newParameter(t, isa.Generic, tensor.F64, &Muon{Momentum: mu, Iteration: PolarExpress(), Scale: JordanScale},
		make([]float64, rows*cols), rows, cols)
	buf, want := make([]float64, rows*cols), make([]float64, rows*cols)
	for step := 1; step <= 4; step++ {
		g, u := gaussian(uint64(step), rows*cols), make([]float64, rows*cols)
		x.step(g, Step{T: step, LR: 0.02})
		for i := range buf {
			buf[i] = mu*buf[i] + g[i]
			u[i] = g[i] + mu*buf[i]
		}
		for i, v := range orthogonalised(t, isa.Generic, tensor.F64, PolarExpress(), rows, cols, u) {
			want[i] -= 0.02 * v
		}
	}
	near(t, "weights", &x.Value, want, 0, 1e-12)
}

// A fused weight moves as the weights it is made of would, each by itself; with NorMuon, too.
func TestMuonTakesFusedWeightsApart(t *testing.T) {
	const cols = 10
	for _, beta := range []float64{0, 0.95} {
		fused := []nn.Part{{Name: "q", Rows: 12}, {Name: "k", Rows: 4}, {Name: "v", Rows: 7}}
		rows := 0
		for _, p := range fused {
			rows += p.Rows
		}
		start, g := gaussian(1, rows*cols), gaussian(2, rows*cols)
		run := func(from, to int, parts []nn.Part) *parameter {
			o := &Muon{Momentum: 0.95, Iteration: PolarExpress(), Scale: MatchRMS, RowBeta: beta}
			x := newParameter(t, isa.Generic, tensor.F64, o, start[from*cols:to*cols], to-from, cols)
			x.Parts = parts
			for step := 1; step <= 3; step++ {
				x.step(g[from*cols:to*cols], Step{T: step, LR: 0.01, Decay: 0.1})
			}
			return x
		}
		whole, from := run(0, rows, fused), 0
		for _, p := range fused {
			want := run(from, from+p.Rows, nil)
			for i := range p.Rows * cols {
				if got, w := whole.Value.Float64(from*cols+i), want.Value.Float64(i); got != w {
					t.Fatalf("NorMuon %v: element %d of %s is %v, by itself it is %v", beta > 0, i, p.Name, got, w)
				}
			}
			from += p.Rows
		}
	}
}

// NorMuon leaves the norm of an update what it is and makes its rows alike.
func TestNorMuonEvensOutRows(t *testing.T) {
	const rows, cols = 24, 8
	g := gaussian(5, rows*cols)
	for c := range cols {
		g[c] *= 100 // a row that dominates the gradient
	}
	update := func(beta float64) (norm, spread float64) {
		o := &Muon{Momentum: 0, Iteration: PolarExpress(), Scale: JordanScale, RowBeta: beta}
		x := newParameter(t, isa.Generic, tensor.F64, o, make([]float64, rows*cols), rows, cols)
		x.step(g, Step{T: 1, LR: 1})
		low, high := math.Inf(1), 0.0
		for r := range rows {
			sum := 0.0
			for c := range cols {
				sum += x.Value.Float64(r*cols+c) * x.Value.Float64(r*cols+c)
			}
			norm += sum
			low, high = math.Min(low, sum), math.Max(high, sum)
		}
		return math.Sqrt(norm), math.Sqrt(high / low)
	}
	plain, uneven := update(0)
	norm, spread := update(0.95)
	if math.Abs(norm-plain) > 1e-8*plain {
		t.Errorf("the norm of an update is %v, without NorMuon %v", norm, plain)
	}
	if uneven < 2 || spread > 1+1e-6 {
		t.Errorf("rows differ by a factor %v, without NorMuon %v: want 1 of more than 2", spread, uneven)
	}
}

// 4 bytes per parameter of hidden matrices, 4 per row with NorMuon, AdamW's 8 for everything else.
func TestMuonKeepsHalfOfAdamWsState(t *testing.T) {
	a := tensor.NewMeasure("model")
	param := func(role nn.Role, shape ...int) *nn.Param {
		p := nn.Declare("w", role, shape...)
		p.Allocate(a, tensor.F32, a, tensor.F32)
		return p
	}
	params := []*nn.Param{
		param(nn.Matrix, 192, 64), param(nn.Embedding, 1000, 64), param(nn.Head, 1000, 64), param(nn.Norm, 64),
	}
	for rowBeta, want := range map[float64]int{
		0:    4*192*64 + 8*(2*1000*64+64),
		0.95: 4*192*64 + 4*192 + 8*(2*1000*64+64),
	} {
		if got, _ := Measure(&Muon{Iteration: PolarExpress(), Scale: MatchRMS, RowBeta: rowBeta}, params); got != want {
			t.Errorf("NorMuon %v: the state takes %d bytes, want %d", rowBeta > 0, got, want)
		}
	}
}
