package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// positionSchemes are ways for a model to know where tokens stand.
var positionSchemes = map[string]func(*Config){
	"rope":        func(c *Config) { c.Positions = schemes("rope") },
	"interleaved": func(c *Config) { c.RopeLayout = "interleaved" },
	"yarn": func(c *Config) {
		c.RopeScaling = nn.RoPEScaling{Kind: "yarn", Factor: 4, Fast: 0.5, Slow: 0.1}
		c.RopeOriginalContext = 4
	},
	"learned":     func(c *Config) { c.Positions = schemes("learned") },
	"alibi":       func(c *Config) { c.Positions = schemes("alibi") },
	"none":        func(c *Config) { c.Positions = schemes("none") },
	"rope, alibi": func(c *Config) { c.Positions = schemes("rope, alibi") },
	"rope, none":  func(c *Config) { c.Positions = schemes("rope, none") },
}

// Gradients, footprint and packing hold for every scheme.
func TestPositionSchemes(t *testing.T) {
	for name, change := range positionSchemes {
		t.Run(name, func(t *testing.T) {
			c := small
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			if got := x.peaks(); got != x.foot {
				t.Errorf("a step used %+v, measured %+v", got, x.foot)
			}
			checkGradients(t, x)
			if n := filetest.AllocsPerRun(3, x.gradients); n != 0 {
				t.Errorf("%v allocations per forward and backward pass", n)
			}
			checkPacking(t, c)
		})
	}
}

// The last token of a model with one layer sees a set if nothing tells where its keys stand: the order of the tokens
// before it does not matter, and with every other scheme it does.
func TestOnlyNonePositionsSeeASet(t *testing.T) {
	for name, change := range positionSchemes {
		c := small
		c.Layers = 1
		change(&c)
		x := newBench(t, c, "fp64", 1, 8)
		x.b.SetPositions(false)
		x.loss()
		before := x.b.Losses.F64()[7]
		ids := x.b.Tokens.I32()
		ids[1], ids[4] = 3, 17
		x.loss()
		first := x.b.Losses.F64()[7]
		ids[1], ids[4] = ids[4], ids[1]
		x.loss()
		if d := math.Abs(x.b.Losses.F64()[7] - first); (d < 1e-12) != (name == "none") || first == before {
			t.Errorf("%s: two tokens swapped change the last token's loss by %g", name, d)
		}
	}
}

// Interleaved pairs with the rows of the query and key weights permuted within each head are the model with halves,
// bit for bit.
func TestRotaryLayoutsAreOneModel(t *testing.T) {
	c := small
	halves := newBench(t, c, "fp64", 2, 8)
	c.RopeLayout = "interleaved"
	pairs := newBench(t, c, "fp64", 2, 8)
	for i, p := range halves.m.Params() {
		from, to := &p.Value, &pairs.m.Params()[i].Value
		for r := range from.Rows() {
			place := r
			if len(p.Parts) == 3 && r < p.Parts[0].Rows+p.Parts[1].Rows { // q and k
				e := r % c.HeadDim
				place = r - e + 2*(e%(c.HeadDim/2)) + e/(c.HeadDim/2)
			}
			for k := range from.Cols() {
				to.SetFloat64(place*from.Cols()+k, from.Float64(r*from.Cols()+k))
			}
		}
	}
	halves.loss()
	pairs.loss()
	for i, want := range halves.b.Losses.F64() {
		if got := pairs.b.Losses.F64()[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("token %d: loss %v interleaved, %v in halves", i, got, want)
		}
	}
}

// Layers without rotary positions need no tables, and those with share one pair of them.
func TestRotaryTablesAreInTheFootprint(t *testing.T) {
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	params := func(positions string) int {
		c := small
		c.Context, c.Positions = 128<<10, schemes(positions)
		return Measure(c, p, 1, 8, true).Params
	}
	tables := 2 * 4 * (128 << 10) * small.HeadDim / 2
	if got := params("rope") - params("none"); got != tables {
		t.Errorf("positions for %d tokens take %d bytes, want %d", 128<<10, got, tables)
	}
	if params("rope,none") != params("rope") {
		t.Error("one rotary layer of two has other tables than both")
	}
	if got, want := params("learned")-params("none"), 4*(128<<10)*small.Dim; got != want {
		t.Errorf("learned positions take %d bytes, want %d", got, want)
	}
}

// Without a scheme the model is the rotary one, bit for bit.
func TestPositionsAreRotaryByDefault(t *testing.T) {
	x := newBench(t, small, "bf16", 2, 8)
	c := small
	c.Positions, c.RopeScaling = schemes("rope"), nn.RoPEScaling{Kind: "linear", Factor: 1}
	y := newBench(t, c, "bf16", 2, 8)
	x.loss()
	y.loss()
	if !bytes.Equal(x.b.Losses.Raw(), y.b.Losses.Raw()) {
		t.Error("losses differ")
	}
}

func TestParsePositions(t *testing.T) {
	for text, want := range map[string]int{"rope": 1, "rope,rope,rope,none": 4, " alibi , none": 2, "learned": 1} {
		var list Positions
		if err := list.UnmarshalText([]byte(text)); err != nil || len(list) != want {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
	for _, text := range []string{
		"", "RoPE", "rope,", ",", "learned,none", "rope,learned", "learned,learned", "sinusoidal", "rope none",
	} {
		var list Positions
		if err := list.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, list)
		}
	}
}

// Every position's row starts from the normal distribution of tables.
func TestLearnedPositionsStartAsTables(t *testing.T) {
	c := small
	c.Positions, c.Context, c.Dim = schemes("learned"), 512, 64
	x := newBench(t, c, "fp32", 1, 8)
	p := x.m.Params()[1]
	if p.Name != "positions" || p.Value.Rows() != 512 || p.Value.Cols() != 64 || p.Role != nn.Embedding {
		t.Fatalf("parameter 1 is %s [%d, %d] of role %v", p.Name, p.Value.Rows(), p.Value.Cols(), p.Role)
	}
	sum := 0.0
	for i := range p.Value.Len() {
		sum += p.Value.Float64(i) * p.Value.Float64(i)
	}
	if std := math.Sqrt(sum / float64(p.Value.Len())); math.Abs(std-c.InitStd) > 0.02*c.InitStd {
		t.Errorf("standard deviation %v, want %v", std, c.InitStd)
	}
	if p.Value.DType() != tensor.F32 {
		t.Errorf("stored as %v", p.Value.DType())
	}
}
