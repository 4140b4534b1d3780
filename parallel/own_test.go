package parallel

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
)

// Whatever the model, the optimizer and the number of ranks, every element has one owner, runs are cut at stretches
// only, parts are whole, and no rank has more than its share by more than a stretch a unit (the tables of the first are
// units of their own) and the largest part.
func TestEveryElementHasOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var units [][]*nn.Param
		var all []*nn.Param
		division := map[*nn.Param]optim.Division{}
		largest, total := 0, 0
		for range rapid.IntRange(1, 5).Draw(t, "units") {
			var unit []*nn.Param
			for range rapid.IntRange(1, 6).Draw(t, "params") {
				rows, cols := rapid.IntRange(1, 300).Draw(t, "rows"), rapid.IntRange(1, 400).Draw(t, "cols")
				p := nn.Declare("w", nn.Matrix, rows, cols)
				division[p] = rapid.SampledFrom([]optim.Division{optim.Elements, optim.Parts, optim.Indivisible}).
					Draw(t, "division")
				if rows > 2 && rapid.Bool().Draw(t, "fused") {
					p.Parts = []nn.Part{{Rows: 1}, {Rows: rows - 1}}
				}
				if division[p] != optim.Elements {
					largest = max(largest, p.Len())
				}
				total += p.Len()
				unit, all = append(unit, p), append(all, p)
			}
			units = append(units, unit)
		}
		ranks := rapid.IntRange(1, 9).Draw(t, "ranks")
		load := make([]int, ranks)
		param, next := 0, 0
		for _, p := range Deal(units, ranks, func(p *nn.Param) optim.Division { return division[p] }) {
			if p.Param != param || next == all[param].Len() {
				if next != all[param].Len() || p.Param != param+1 {
					t.Fatalf("%+v follows element %d of parameter %d, which has %d", p, next, param, all[param].Len())
				}
				param, next = p.Param, 0
			}
			whole := all[param]
			switch {
			case p.From != next || p.To <= p.From || p.Owner < 0 || p.Owner >= ranks:
				t.Fatalf("%+v follows element %d", p, next)
			case division[whole] == optim.Elements && (p.From%device.Stretch != 0 || p.Part >= 0):
				t.Fatalf("%+v is cut within a stretch", p)
			case division[whole] == optim.Indivisible && p.To-p.From != whole.Len():
				t.Fatalf("%+v is a part of an indivisible parameter of %d", p, whole.Len())
			case division[whole] == optim.Parts && len(whole.Parts) > 0 &&
				p.To-p.From != whole.Parts[p.Part].Rows*whole.Shape[1]:
				t.Fatalf("%+v is not part %d", p, p.Part)
			}
			next = p.To
			load[p.Owner] += p.To - p.From
		}
		if param != len(all)-1 || next != all[param].Len() {
			t.Fatalf("the last piece ends at element %d of parameter %d of %d", next, param, len(all))
		}
		dealt := len(units[0]) + len(units) - 1
		for r, n := range load {
			if most := total/ranks + dealt*device.Stretch + largest; n > most {
				t.Errorf("rank %d of %d owns %d of %d elements, more than %d", r, ranks, n, total, most)
			}
		}
	})
}

// Ranks that share layers own the same parts of them, although the tables that tensor parallelism cuts differ by a row,
// and both stages that have a tied table give each run or part of it to the same rank.
func TestRanksThatShareATableOwnTheSameParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		between := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		layers, tensors, ranks := between("layers", 2, 5), between("tensors", 1, 3), between("ranks", 1, 5)
		c := model.Config{
			Family: "llama", Layers: layers, Dim: 24, Heads: 6, KVHeads: 6, HeadDim: 4, Context: 8,
			Activation: "swiglu", FFN: 6 * between("ffn", 1, 100), Vocab: between("vocab", 3, 600),
			TieEmbeddings: rapid.Bool().Draw(t, "tied"),
		}
		rule := rapid.SampledFrom([]optim.Optimizer{&optim.Adafactor{}, &optim.Muon{}, optim.AdamW{}}).Draw(t, "rule")
		cut := between("stages begin", 1, layers-1)
		deal := func(tensor int, chunk model.Span) []Piece {
			part := model.Part{Tensor: tensor, Tensors: tensors, Chunks: []model.Span{chunk}}
			return Deal(model.DeclarePart(c, part).UnitParams(), ranks, func(p *nn.Param) optim.Division {
				return optim.Divide(rule, p)
			})
		}
		owners := func(list []Piece, parts bool) (owners [][3]int) {
			for _, p := range list {
				if parts && p.Part >= 0 || !parts && p.Param == 0 {
					owners = append(owners, [3]int{p.Param, p.Part, p.Owner})
				}
			}
			return owners
		}
		first, last := model.Span{To: cut}, model.Span{From: cut, To: layers}
		for tensor := range tensors {
			for _, stage := range []model.Span{first, last} {
				if a, b := owners(deal(0, stage), true), owners(deal(tensor, stage), true); !slices.Equal(a, b) {
					t.Fatalf("stage %v: parts and owners are %v, those of peer %d %v", stage, a, tensor, b)
				}
			}
			a, b := owners(deal(tensor, first), false), owners(deal(tensor, last), false)
			if c.TieEmbeddings && !slices.Equal(a, b) {
				t.Fatalf("peer %d: the first stage deals the table as %v, the last as %v", tensor, a, b)
			}
		}
	})
}

// A model of 10¹⁴ parameters is dealt at once: a refusal that says how many devices hold it deals it a hundred times.
func TestDealingDoesNotTakeLongerForLargeModels(t *testing.T) {
	p := nn.Declare("w", nn.Matrix, 1<<24, 1<<23)
	pieces := Deal([][]*nn.Param{{p}}, 512, func(*nn.Param) optim.Division { return optim.Elements })
	for i, piece := range pieces {
		if piece.Owner != i || piece.To-piece.From != 1<<38 {
			t.Fatalf("%+v is piece %d of 512", piece, i)
		}
	}
	if len(pieces) != 512 {
		t.Errorf("%d pieces for 512 ranks", len(pieces))
	}
}
