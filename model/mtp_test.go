package model

import (
	"fmt"
	"math"
	"testing"
)

func TestTry(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"bigram": func(c *Config) { c.Bigram = 40 },
		"smear":  func(c *Config) { c.Smear = true },
		"both":   func(c *Config) { c.Bigram, c.Smear, c.TieEmbeddings = 40, true, false },
	} {
		t.Run(name, func(t *testing.T) {
			c := recipe
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			for _, p := range x.m.Params() {
				if p.Name == "smear" || p.Name == "bigram" {
					for i := range p.Value.F64() {
						p.Value.F64()[i] += 0.3 * float64(i%7-3)
					}
				}
			}
			x.gradients()
			checkGradients(t, x)
		})
	}
	c := recipe
	c.Ahead, c.AheadWeight = 1, 0.3
	x := newBench(t, c, "fp64", 2, 8)
	x.gradients()
	for _, p := range x.m.Params() {
		w, g := p.Value.F64(), append([]float64(nil), p.Grad.F64()...)
		p.ResetGrad()
		for _, j := range []int{0, len(w) / 2, len(w) - 1} {
			total := func(d float64) float64 {
				w[j] += d
				x.tape.Reset(true)
				x.m.Loss(x.tape, x.b)
				w[j] -= d
				return x.dev.Sum(&x.b.Losses) + 0.3*x.dev.Sum(x.m.ahead[0].losses)
			}
			if want := (total(1e-5) - total(-1e-5)) / 2e-5; math.Abs(want-g[j]) > 2e-6*(1+math.Abs(want)) {
				t.Errorf("%s %d %v %v", p.Name, j, want, g[j])
			}
		}
	}
	fmt.Println(x.foot == x.peaks())
}
