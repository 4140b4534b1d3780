package model

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/internal/filetest"
	"anneal/precision"
	"anneal/tensor"

	"pgregory.net/rapid"
)

var deep = func() Config {
	c := small
	c.Layers = 5
	return c
}()

// bits returns the losses and gradients of one pass.
func (x *bench) bits() []byte {
	x.gradients()
	all := bytes.Clone(x.b.Losses.Raw())
	for _, p := range x.m.Params() {
		all = append(all, p.Grad.Raw()...)
	}
	return all
}

// drawLayout draws any way to treat the layers, also such that no strategy has.
func drawLayout(t *rapid.T, layers int) Layout {
	l := Layout{Segment: rapid.IntRange(1, layers).Draw(t, "segment")}
	l.Whole = rapid.IntRange(0, layers).Draw(t, "whole")
	l.Attention = rapid.IntRange(0, layers-l.Whole).Draw(t, "attention")
	return l
}

// Gradients are those of the plain tape to the bit, whatever runs again.
func TestRecomputedGradientsHaveTheSameBits(t *testing.T) {
	for _, policy := range precision.Names() {
		c := deep
		c.QKNorm = policy != "fp32"
		want := newBench(t, c, policy, 2, 8).bits()
		for _, name := range []string{"every_layer", "every:2", "every:3", "sqrt", "selective"} {
			r, err := ParseRecompute(name)
			if err != nil {
				t.Fatal(err)
			}
			c.Recompute = r.Layout(c.Layers)
			x := newBench(t, c, policy, 2, 8)
			for pass := range 2 { // the second meets the memory as the first left it
				if !bytes.Equal(x.bits(), want) {
					t.Errorf("%s, %s, pass %d: %+v gives other bits than none", policy, name, pass, c.Recompute)
				}
			}
		}
	}
}

func TestAnyLayoutHasTheSameBitsAndItsMeasuredFootprint(t *testing.T) {
	want := newBench(t, deep, "bf16", 2, 8).bits()
	rapid.Check(t, func(rt *rapid.T) {
		c := deep
		c.Recompute = drawLayout(rt, c.Layers)
		x := newBench(t, c, "bf16", 2, 8)
		if !bytes.Equal(x.bits(), want) {
			rt.Fatalf("%+v gives other bits than none", c.Recompute)
		}
		if got := x.peaks(); got != x.foot {
			rt.Fatalf("%+v used %+v, measured %+v", c.Recompute, got, x.foot)
		}
	})
}

// The closed form that budgets are fitted by is what the model's own code takes, to the byte.
func TestKeepCostIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := deep
		c.Layers, c.QKNorm = rapid.IntRange(1, 12).Draw(rt, "layers"), rapid.Bool().Draw(rt, "qk-norm")
		p, err := precision.Lookup(rapid.SampledFrom(precision.Names()).Draw(rt, "precision"))
		if err != nil {
			rt.Fatal(err)
		}
		rows := rapid.IntRange(1, 5).Draw(rt, "rows")
		cost := newKeepCost(c, p, rows, c.Context)
		c.Recompute = drawLayout(rt, c.Layers)
		want := Measure(c, p, rows, c.Context, true).Keep
		if got := cost.peak(c.Recompute, c.Layers); got != want {
			rt.Fatalf("%s, %d rows, %d layers, %+v: %d bytes, the model keeps %d",
				p.Name, rows, c.Layers, c.Recompute, got, want)
		}
	})
}

// away keeps the inputs of segments in no memory of the tape.
type away struct{}

func (away) Reset() {}
func (away) Keep()  {}
func (away) Last()  {}
func (away) New(format tensor.DType, shape []int) tensor.Tensor {
	return tensor.NewMeasure("").New(format, shape...)
}

// keptWith measures what the tape keeps of a micro-batch, with inputs of segments elsewhere unless they are nil.
func keptWith(c Config, p precision.Policy, rows int, inputs autograd.SegmentInputs) int {
	keep := tensor.NewMeasure("activations")
	t := autograd.NewTape(device.Null{}, p.Types(), keep, tensor.NewMeasure("scratch"))
	t.Inputs = inputs
	t.Reset(true)
	Outline(c, p).Loss(t, NewBatch(tensor.NewMeasure("batch"), p, rows, c.Context))
	t.Backward()
	return keep.Peak()
}

// A fitted layout fits and no cheaper one does, with the inputs of segments in memory and elsewhere; below the leanest
// there is an error that names it.
func TestBudgetsAreFittedWithTheLeastRecomputation(t *testing.T) {
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	for _, inputs := range []autograd.SegmentInputs{nil, away{}} {
		fitsBudgets(t, p, inputs)
	}
}

func fitsBudgets(t *testing.T, p precision.Policy, inputs autograd.SegmentInputs) {
	t.Helper()
	c := deep
	c.Layers = 7
	most, least := keptWith(c, p, 2, inputs), 1<<30
	kept, costs := map[Layout]int{}, map[Layout]float64{}
	for segment := 1; segment <= c.Layers; segment++ {
		for w := 0; w < c.Layers; w += segment {
			for a := 0; a <= c.Layers-w; a++ {
				l := Layout{Whole: w, Segment: segment, Attention: a}
				c := c
				c.Recompute = l
				kept[l], costs[l] = keptWith(c, p, 2, inputs), Outline(c, p).recomputedFLOPs(l, c.Context)
				least = min(least, kept[l])
			}
		}
	}
	elsewhere := inputs != nil
	for budget := least; budget <= most+100; budget += (most - least) / 40 {
		r, err := ParseRecompute(fmt.Sprintf("budget:%d", budget))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Fit(c, p, 2, 8, elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		fitted := c
		fitted.Recompute = got
		time := Outline(c, p).recomputedFLOPs(got, c.Context)
		if n := keptWith(fitted, p, 2, inputs); n > budget {
			t.Errorf("elsewhere %v, budget %d: %+v keeps %d", elsewhere, budget, got, n)
		}
		for l, n := range kept {
			if n <= budget && costs[l] < time {
				t.Errorf("elsewhere %v, budget %d: %+v costs %v, %+v fits too and costs %v",
					elsewhere, budget, got, time, l, costs[l])
			}
		}
	}
	r := Recompute{name: "budget", budget: least - 1}
	if _, err := r.Fit(c, p, 2, 8, elsewhere); err == nil || !strings.Contains(err.Error(), mebibytes(least)) {
		t.Errorf("elsewhere %v, a byte below the least: %v does not name %s", elsewhere, err, mebibytes(least))
	}
}

func TestStrategiesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "all", "every", "every:", "every:0", "every:-1", "every:x", "sqrt:2", "none:", "budget", "budget:",
		"budget:0", "budget:GiB", "budget:1XB", "budget:-1MB", "budget:NaN", "budget:1e30", "Every_layer",
	} {
		if r, err := ParseRecompute(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
	for text, want := range map[string]int{
		"1.5GiB": 3 << 29, "800MB": 800e6, "4096": 4096, "2 kib": 2048, "1e3b": 1000,
	} {
		if r, err := ParseRecompute("budget:" + text); err != nil || r.budget != want {
			t.Errorf("budget:%s is read as %d, %v; want %d", text, r.budget, err, want)
		}
	}
}

func TestRecomputingStepAllocatesNothing(t *testing.T) {
	c := deep
	c.Recompute = Layout{Whole: 2, Segment: 2, Attention: 2}
	x := newBench(t, c, "bf16", 2, 8)
	x.gradients()
	if n := filetest.AllocsPerRun(10, x.gradients); n != 0 {
		t.Errorf("%v allocations per forward and backward pass", n)
	}
}

// checkRecomputation: what runs again changes no bit, whatever is dropped, and where nothing is, it keeps what it was
// taken to. It returns the bits of five layers.
func checkRecomputation(t *testing.T, c Config, policy string) []byte {
	t.Helper()
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	plain := newBench(t, c, policy, 2, 8)
	plain.b.Seq.Noise = noise(1)
	want := plain.bits()
	for _, l := range []Layout{
		{Whole: 4, Segment: 1}, {Whole: 3, Segment: 3}, {Attention: 5}, {Whole: 2, Segment: 2, Attention: 2},
	} {
		c.Recompute = l
		x := newBench(t, c, policy, 2, 8)
		x.b.Seq.Noise = noise(1)
		if !bytes.Equal(x.bits(), want) {
			t.Errorf("%s, dropout %v, depth %v: %+v gives other bits than none",
				policy, c.Dropout, c.StochasticDepth, l)
		}
		if got := newKeepCost(c, p, 2, 8).peak(l, c.Layers); c.StochasticDepth == 0 && got != x.foot.Keep {
			t.Errorf("%s: %+v is taken to keep %d bytes, it keeps %d", policy, l, got, x.foot.Keep)
		}
	}
	return want
}
