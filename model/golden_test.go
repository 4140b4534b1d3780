package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// golden is what another implementation of a family computes, in float64, from weights that follow from a formula.
type golden struct {
	Config struct { // where it is not the test's own
		Vocab, Context, Dim, Layers, Heads int
		Eps                                float64
	}
	Tokens, Targets [][]int32
	Loss            float64 // summed
	Logits          []float64
	Balance, Z      []float64 // of the router of each layer
	Grads           []struct {
		Name string
		Grad []float64
	}
}

func readGolden(t *testing.T, file string) *golden {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return &g
}

// bench returns a bench in fp64 with the fixture's batch, whose rows have a second document from token split on.
func (g *golden) bench(t *testing.T, c Config, split int) *bench {
	t.Helper()
	tokens := len(g.Tokens[0])
	x := newBench(t, c, "fp64", len(g.Tokens), tokens)
	for r := range g.Tokens {
		copy(x.b.Tokens.I32()[r*tokens:], g.Tokens[r])
		copy(x.b.Targets.I32()[r*tokens:], g.Targets[r])
		for i := range tokens {
			start := &x.b.Start.I32()[r*tokens+i]
			if *start = 0; i >= split {
				*start = int32(split)
			}
		}
	}
	x.b.SetPositions(true)
	if n := len(x.m.Params()); n != len(g.Grads) {
		t.Fatalf("%d parameters, want %d", n, len(g.Grads))
	}
	return x
}

// check compares loss, gradients and logits.
func (g *golden) check(t *testing.T, x *bench) {
	t.Helper()
	equal := func(name string, got, want []float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s has %d elements, want %d", name, len(got), len(want))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
				t.Fatalf("%s[%d] = %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	x.gradients()
	equal("loss", []float64{x.dev.Sum(&x.b.Losses)}, []float64{g.Loss})
	for n, p := range x.m.Params() {
		if p.Frozen {
			continue
		}
		equal("the gradient of "+p.Name+", there "+g.Grads[n].Name, p.Grad.F64(), g.Grads[n].Grad)
	}
	x.tape.Reset(false)
	equal("logits", x.m.Logits(x.tape, x.b, 0, len(g.Tokens)*len(g.Tokens[0])).F64(), g.Logits)
}
