package optim_test

import (
	"slices"
	"sync"
	"testing"

	"anneal/autograd"
	"anneal/comm/local"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/nn"
	"anneal/optim"
	"anneal/parallel"
	"anneal/tensor"
)

// cutCase is a parameter with what each of four peers has of it.
type cutCase struct {
	shape   []int
	parts   []nn.Part
	cut     autograd.Cut
	regions []nn.Region
}

// cutCases has every way to cut a parameter: parts of a fused weight, parts that two peers share, columns, a table that
// does not divide, a vector.
func cutCases() map[string]cutCase {
	const peers = 4
	var fused, columns, table, vector cutCase
	fused.parts = []nn.Part{{Name: "q", Rows: 8}, {Name: "k", Rows: 4}, {Name: "v", Rows: 4}}
	fused.shape = []int{16, 6}
	columns, table, vector = cutCase{shape: []int{6, 12}}, cutCase{shape: []int{11, 5}}, cutCase{shape: []int{16}}
	fused.cut, table.cut, vector.cut = autograd.Outputs, autograd.Outputs, autograd.Outputs
	columns.cut = autograd.Inputs
	for r := range peers {
		k := 8 + r/2*2
		rows := []nn.Span{{From: 2 * r, To: 2*r + 2}, {From: k, To: k + 2}, {From: k + 4, To: k + 6}}
		fused.regions = append(fused.regions, nn.Region{Rows: rows, Cols: nn.Span{To: 6}})
		vector.regions = append(vector.regions, nn.Region{Rows: rows})
		columns.regions = append(columns.regions, nn.Region{
			Rows: []nn.Span{{To: 6}}, Cols: nn.Span{From: 3 * r, To: 3*r + 3},
		})
		table.regions = append(table.regions, nn.Region{
			Rows: []nn.Span{{From: r * 11 / peers, To: (r + 1) * 11 / peers}}, Cols: nn.Span{To: 5},
		})
	}
	return map[string]cutCase{"fused": fused, "columns": columns, "table": table, "vector": vector}
}

// number is element i of a gradient or of weights.
func number(step, i int) float64 { return float64((i*7919+step*104729)%1009)/1009 - 0.5 }

// update makes three updates of a parameter on a rank and returns its weights.
func update(t *testing.T, o optim.Optimizer, p *nn.Param) *tensor.Tensor {
	dev := cpu.NewTier(isa.Generic, 1)
	defer dev.Close()
	a, err := tensor.NewArena("test", 1<<20)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { a.Close() })
	p.Allocate(a, tensor.F32, a, tensor.F32)
	fill := func(x *tensor.Tensor, step int) {
		p.Region.Runs(p.Shape, func(local, global, n int) {
			for i := range n {
				x.SetFloat64(local+i, number(step, global+i))
			}
		})
	}
	fill(&p.Value, 0)
	state := o.Layout(a, p)
	for step := 1; step <= 3; step++ {
		fill(&p.Grad, step)
		o.Update(dev, p, state, optim.Step{T: step, LR: 0.1, Decay: 0.1, Scale: 0.5}, a)
	}
	return &p.Value
}

// Peers that have parts of a parameter make the same bits of it as one rank that has all.
func TestCutUpdatesAreThoseOfTheWhole(t *testing.T) {
	rules := map[string]func() optim.Optimizer{
		"muon": func() optim.Optimizer {
			return &optim.Muon{Momentum: 0.9, Iteration: optim.Jordan(), Scale: optim.MatchRMS,
				Rest: optim.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}}
		},
		"normuon": func() optim.Optimizer {
			return &optim.Muon{Momentum: 0.9, Iteration: optim.Jordan(), Scale: optim.MatchRMS, RowBeta: 0.9}
		},
		"adafactor": func() optim.Optimizer { return &optim.Adafactor{Beta1: 0.9} },
		"palm":      func() optim.Optimizer { return &optim.Adafactor{Beta1: 0.9, Whole: true} },
	}
	for name, c := range cutCases() {
		for rule, make := range rules {
			declare := func() *nn.Param {
				p := nn.Declare("w", nn.Matrix, c.shape...)
				p.Parts = c.parts
				return p
			}
			if name == "vector" && rule == "normuon" {
				continue // it has no rows
			}
			want := update(t, make(), declare())
			var group sync.WaitGroup
			for r, world := range local.New(4, local.Options{}) {
				group.Go(func() {
					p := declare()
					p.Cut, p.Regions = c.cut, c.regions
					p.Place(c.regions[r])
					got := update(t, &optim.Cut{Optimizer: make(), Peers: parallel.NewPeers("update", world)}, p)
					p.Region.Runs(p.Shape, func(local, global, n int) {
						if !slices.Equal(got.F32()[local:local+n], want.F32()[global:global+n]) {
							t.Errorf("%s: %s: peer %d has other weights from element %d on", rule, name, r, global)
						}
					})
				})
			}
			group.Wait()
		}
	}
}
