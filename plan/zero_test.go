package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/internal/units"
	"anneal/model"
	"anneal/nn"
	"anneal/parallel"
	"anneal/train"
)

// shape is a model whose tensors are multiples of 64 bytes, so that no arena has gaps.
var shape = []string{
	"model.layers=5", "model.dim=128", "model.heads=4", "model.ffn=384", "model.context=64", "model.vocab=512",
	"train.batch_tokens=1024", "train.micro_batch=2",
}

func footprintsOf(t *testing.T, ranks, zero int, set []string) (*config.Config, []*train.Footprint) {
	t.Helper()
	cfg := load(t, slices.Concat(shape, set, []string{
		fmt.Sprint("parallel.ranks=", ranks), fmt.Sprint("parallel.zero=", zero),
	})...)
	list, err := footprints(cfg, machine{}, upTo(ranks), false)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, list
}

// The bytes that all ranks keep of weights, gradients and optimizer state are those of the formula, none more: D times
// what is kept whole, and once what is divided. For AdamW in bf16 and a model of matrices these are 16, 6 + 12/D,
// 2 + 16/D and 16/D bytes a parameter and rank.
func TestRanksKeepWhatTheFormulaSays(t *testing.T) {
	for _, set := range [][]string{
		nil, {"precision=fp32"}, {"precision=fp16"}, {"precision=fp8"}, {"precision=bf16_sr"}, {"precision=fp64"},
		{"model.tie_embeddings=false"}, {"optimizer.name=lion"}, {"optimizer.name=adam8bit"}, {"optimizer.name=muon"},
		{"optimizer.name=adafactor"}, {"optimizer.name=sgd", "model.family=gpt2"},
	} {
		cfg, alone := footprintsOf(t, 1, 0, set)
		state, policy := alone[0].Bytes(train.OptimizerState), alone[0].Policy
		var updated, read, masters, gradients int64
		for _, p := range model.Outline(alone[0].Model, policy).Params() {
			n, v, c := int64(p.Len()), int64(p.Value.DType().Size()), int64(train.ReadFormat(cfg, policy, p).Size())
			updated, read, gradients = updated+n*v, read+n*c, gradients+n*int64(policy.Master.Size())
			if v != c {
				masters += n * v
			}
		}
		for _, ranks := range []int64{2, 3, 8} {
			for zero, want := range []int64{
				ranks * (updated + gradients + state),
				ranks*(read+gradients) + masters + state,
				ranks*read + masters + gradients + state,
				updated + gradients + state,
			} {
				_, list := footprintsOf(t, int(ranks), zero, set)
				got := int64(0)
				for _, f := range list {
					got += f.Bytes(train.Parameters) - f.Tables + f.Bytes(parallel.MasterWeights) +
						f.Bytes(train.Gradients) + f.Bytes(train.OptimizerState)
				}
				if got != want {
					t.Errorf("%v, %d ranks, stage %d: all keep %d bytes, want %d", set, ranks, zero, got, want)
				}
			}
		}
	}
}

// ringBytes is the memory of slots for units, of which only the first is always there.
func ringBytes(units [][]*nn.Param, slots int, bytes func(*nn.Param) int64) int64 {
	of := func(unit []*nn.Param) (n int64) {
		for _, p := range unit {
			n += bytes(p)
		}
		return n
	}
	most := make([]int64, slots)
	for i, unit := range units[1:] {
		most[i%slots] = max(most[i%slots], of(unit))
	}
	sum := of(units[0])
	for _, n := range most {
		sum += n
	}
	return sum
}

// Beside what it keeps, a rank has only named room for what is on its way: gradients of the embedding and of three
// units from stage 2 on, weights of the embedding and of two units at stage 3, and sums that are not yet complete.
func TestRanksHaveNamedSlotsAndNothingElse(t *testing.T) {
	for _, ranks := range []int{2, 4, 16} {
		for zero := range Stages {
			cfg, list := footprintsOf(t, ranks, zero, nil)
			units := model.Declare(list[0].Model).UnitParams()
			var slots, gathered int64
			if zero >= 2 {
				slots = ringBytes(units, parallel.Lag+1, func(p *nn.Param) int64 { return 4 * int64(p.Len()) })
			}
			if zero == 3 {
				gathered = ringBytes(units, 2, func(p *nn.Param) int64 {
					return int64(p.Len() * train.ReadFormat(cfg, list[0].Policy, p).Size())
				})
			}
			fold := int64(0)
			for r, f := range list {
				var all int64
				for _, p := range f.Arenas {
					all += p.Bytes
				}
				fold += f.Bytes(parallel.Fold)
				kept := f.Bytes(train.Parameters) + f.Bytes(parallel.MasterWeights) + f.Bytes(train.Gradients) +
					f.Bytes(train.OptimizerState)
				want := kept + slots + gathered + f.Bytes(parallel.Fold) + f.Bytes(parallel.Received) +
					f.Bytes(train.Activations) + f.Bytes(train.Scratch) + f.Bytes(train.Batch)
				if f.Bytes(parallel.Slots) != slots || f.Bytes(parallel.Gathered) != gathered || all != want {
					t.Errorf("%d ranks, stage %d, rank %d: slots %d and %d, want %d and %d; in all %d, want %d", ranks,
						zero, r, f.Bytes(parallel.Slots), f.Bytes(parallel.Gathered), slots, gathered, all, want)
				}
			}
			count := int64(0)
			for _, p := range model.Declare(list[0].Model).Params() {
				count += int64(p.Len())
			}
			want := int64(0)
			if zero < 2 && ranks < 8 { // of the step's 8 micro-batches, a rank has several
				want = 4 * count
			}
			if fold != want {
				t.Errorf("%d ranks, stage %d: all have %d bytes for sums, want %d", ranks, zero, fold, want)
			}
		}
	}
}

// The plan of a run on ranks is the footprint of its fullest rank, and says what every rank needs.
func TestThePlanIsThatOfTheFullestRank(t *testing.T) {
	for _, name := range []string{"adamw", "muon"} {
		cfg, list := footprintsOf(t, 3, 2, []string{"optimizer.name=" + name})
		most, each := int64(0), []int64(nil)
		for _, f := range list {
			most = max(most, f.Total())
			each = append(each, f.Total())
		}
		p, err := For(cfg, machine{free: most}) // which leaves no room for a copy of the state
		if err != nil || !p.Fits || !slices.Equal(p.Ranks.Bytes, each) {
			t.Fatalf("%s: ranks need %v bytes, the plan says %v, %v", name, each, p, err)
		}
		_, owned := footprintsOf(t, 3, 3, []string{"optimizer.name=" + name})
		f := owned[p.Ranks.Fullest]
		roomy, err := For(cfg, machine{})
		if want := most + f.CheckpointCopy(); err != nil || roomy.Memory.Total() != want {
			t.Errorf("%s: with a copy of what it owns, a rank needs %d bytes, the plan says %d, %v", name, want,
				roomy.Memory.Total(), err)
		}
		if p.Memory.Total() != most || p.Ranks.Bytes[p.Ranks.Fullest] != most || p.Ranks.Stages[2].Total != most {
			t.Errorf("%s: the fullest rank needs %d bytes, the plan is %d, of rank %d", name, most, p.Memory.Total(),
				p.Ranks.Fullest)
		}
		alone, err := train.MeasureRank(cfg, machine{}, absent.New(0, 1, false))
		if err != nil || p.Ranks.Stages[0].Total < alone.Total() {
			t.Errorf("%s: stage 0 keeps %d bytes, a rank alone %d, %v",
				name, p.Ranks.Stages[0].Total, alone.Total(), err)
		}
	}
	// Where there are threads for all ranks, they are taken to be one process, which needs all of their memory, but
	// none for what others send.
	cfg, list := footprintsOf(t, 2, 1, nil)
	together := list[0].Bytes(train.Process)
	for _, f := range list {
		for _, part := range f.Arenas {
			if part.Name != parallel.Received {
				together += part.Bytes
			}
		}
	}
	for free, fits := range map[int64]bool{together: true, together - 1: false} {
		if p, err := For(cfg, machine{free: free}); err != nil || p.Fits != fits || p.Ranks.Together != together {
			t.Errorf("with %d bytes two ranks fit: %v, want %v; %d together, want %d, %v", free, p.Fits, fits,
				p.Ranks.Together, together, err)
		}
	}
	// More threads than cores are still one process.
	cfg, list = footprintsOf(t, 4, 1, []string{"threads=4"})
	p, err := For(cfg, machine{})
	if err != nil || !p.Ranks.Here || p.Bytes() != p.Ranks.Together || p.Bytes() < 3*list[0].Arenas[0].Bytes {
		t.Errorf("four ranks that take turns need %d bytes, %v", p.Bytes(), err)
	}
}

// A rank sends (D−1)/D of a gradient for every sum of micro-batches, in the format of the wire, and of the weights
// none, or the copies that are read: once, or at stage 3 whenever they are not there. published are those of stage 1.
func TestStagesSendTheirFormula(t *testing.T) {
	for _, c := range []struct {
		set       []string
		ranks     int
		gradients float64 // bytes a parameter, over (D−1)/D
	}{
		{nil, 8, 4}, {nil, 4, 8}, {nil, 3, 12}, // 8 micro-batches in 1, 2 and 3 rounds
		{[]string{"parallel.wire=bf16"}, 8, 2},
		{[]string{"parallel.wire=int8"}, 8, 1 + 1./64},
		{[]string{"precision=bf16_sr"}, 8, 4},
		{[]string{"precision=fp32"}, 8, 4},
	} {
		cfg, list := footprintsOf(t, c.ranks, 1, c.set)
		f := list[0]
		tr := traffics(t, cfg, f)
		count := model.Outline(f.Model, f.Policy).Count()
		if published := f.Bytes(train.Parameters) - f.Tables; int64(tr.published) != published {
			t.Errorf("%v: %v bytes are published, at stage 1 a rank has %d to read", c.set, tr.published, published)
		}
		others := float64(c.ranks-1) / float64(c.ranks) * float64(count)
		for zero := range Stages {
			s, want := tr.stage(zero, f), int64(c.gradients*others+0.5)
			if zero == 0 {
				want = int64((c.gradients+4)*others + 0.5) // the sums, to all
			}
			if s.SentGradients != want || (s.SentWeights == 0) != (zero == 0) {
				t.Errorf("%v, %d ranks, stage %d: sends %d bytes of gradients, want %d; %d of weights", c.set, c.ranks,
					zero, s.SentGradients, want, s.SentWeights)
			}
		}
	}
}

func traffics(t *testing.T, cfg *config.Config, f *train.Footprint) traffic {
	t.Helper()
	tr, err := trafficOf(cfg, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Groups that step alone exchange gradients among their own ranks only, as a run of half the batch would. Beside that a
// rank sends the weights that it updates to the other group, here 4 bytes each once in 4 steps, and all of a group
// together keep 8 bytes a parameter for the outer step.
func TestGroupsSendWeightsNowAndThen(t *testing.T) {
	for _, d := range []int64{1, 2, 4} {
		cfg, list := footprintsOf(t, int(2*d), 1, []string{"parallel.outer.groups=2", "parallel.outer.every=4"})
		half, of := footprintsOf(t, int(d), 1, []string{"train.batch_tokens=512"})
		got, want := traffics(t, cfg, list[0]).stage(1, list[0]), traffics(t, half, of[0]).stage(1, of[0])
		count := model.Outline(list[0].Model, list[0].Policy).Count()
		want.SentWeights += count / d
		if got.SentGradients != want.SentGradients || got.SentWeights != want.SentWeights {
			t.Errorf("2 groups of %d: a rank sends %d and %d bytes, want %d and %d", d, got.SentGradients,
				got.SentWeights, want.SentGradients, want.SentWeights)
		}
		state := int64(0)
		for _, f := range list {
			state += f.Bytes(train.OuterState)
		}
		if state != 2*8*count {
			t.Errorf("2 groups of %d keep %d bytes of outer state, want 8 a parameter in each", d, state)
		}
	}
}

// Blocks of micro-batches are summed before they travel; at stage 3 weights still come for every micro-batch.
func TestBlocksOfMicroBatchesSendLess(t *testing.T) {
	cfg, list := footprintsOf(t, 4, 3, nil) // 8 micro-batches
	one := traffics(t, cfg, list[0])
	for block, sums := range map[int]int{1: 2, 2: 1, 3: 1, 8: 1} {
		cfg.Parallel.SumBlock = block
		got := traffics(t, cfg, list[0])
		if got.sums != sums || got.gradients != one.gradients || block == 2 && got.gathered != one.gathered ||
			block == 8 && got.gathered < 3*one.gathered {
			t.Errorf("blocks of %d: %+v, want %d sums; without blocks %+v", block, got, sums, one)
		}
	}
}

// A step of two micro-batches of a model of units 0 to 4: unit 0 comes once; forward 1 2 3 4, back 2 1, forward 3 4,
// back 2 1.
func TestWeightsThatAreThereAreNotSent(t *testing.T) {
	steps := func(units []float64, chunk []int, micros int) float64 {
		w := &window{units: units, received: units[0]}
		for range micros {
			w.pass(chunk)
			back := slices.Clone(chunk)
			slices.Reverse(back)
			w.pass(back)
		}
		return w.received
	}
	units := []float64{10000, 1, 10, 100, 1000}
	for micro, want := range []float64{1: 11122, 2: 12233} {
		if got := steps(units, []int{0, 1, 2, 3, 4}, micro); micro > 0 && got != want {
			t.Errorf("%d micro-batches: %v, want %v", micro, got, want)
		}
	}
	if got := steps([]float64{5, 1, 2}, []int{0, 1, 2}, 3); got != 8 {
		t.Errorf("two units have a slot each: %v, want 8", got)
	}
}

// A step of 8 micro-batches is one sum for each of 8 ranks, and two for each of 4, unless they are added before. A
// model of a few hundred thousand parameters has no pieces for 100 ranks.
func TestRanksThatSendOftenOrOwnNothingAreTold(t *testing.T) {
	for _, c := range []struct{ set, says string }{
		{"parallel.ranks=1", ""}, {"parallel.ranks=8", ""}, {"parallel.ranks=4 parallel.sum_block=2", ""},
		{"parallel.ranks=4", "2 times a step: a larger train.micro_batch sends less, and so does " +
			"parallel.sum_block = 2"},
		{"parallel.ranks=2 parallel.sum_block=2", "parallel.sum_block = 4"},
		{"parallel.ranks=100", "too few pieces for 100 ranks: "},
	} {
		list := planOf(t, machine{}, append(slices.Clone(shape), strings.Fields(c.set)...)...).Ranks.Remarks()
		if got := strings.Join(list, "\n"); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", c.set, got, c.says)
		}
	}
	for want, r := range map[string]Ranks{
		"1 of them owns none,":                        {Count: 8, Idle: 1},
		"2 of them own none,":                         {Count: 8, Idle: 2},
		"pipeline: 1 micro-batch a step on 2 stages,": {Count: 2, Waits: 0.5, Micro: 1, Mesh: make([]Share, 2)},
	} {
		if list := r.Remarks(); len(list) != 1 || !strings.Contains(list[0], want) {
			t.Errorf("%q, want %q", list, want)
		}
	}
}

// The tables of docs/parallel.md are what a plan says: the bytes of the fullest rank.
func TestThePageHasThePlansBytes(t *testing.T) {
	page, err := os.ReadFile("../docs/parallel.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []config.Sources{
		{File: "../examples/llama-98m.yaml", Overrides: []string{"parallel.ranks=8", "model.vocab=16384"}},
		{Recipe: "llama2-7b", Overrides: []string{"parallel.ranks=64"}},
	} {
		s.Planning = true
		cfg, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		p, err := For(cfg, machine{})
		if err != nil {
			t.Fatal(err)
		}
		for _, z := range p.Ranks.Stages {
			row := fmt.Sprintf("| %d |", z.Zero)
			for _, n := range []int64{
				z.Weights, z.Gradients, z.State, z.Transit, z.Kept() + z.Transit, z.SentGradients, z.SentWeights,
			} {
				row += " " + units.Commas(n) + " |"
			}
			if !strings.Contains(string(page), "\n"+row+"\n") {
				t.Errorf("docs/parallel.md does not have, of %s%s:\n%s", s.File, s.Recipe, row)
			}
		}
	}
}

// The tables of a mesh on docs/parallel.md are what a plan says.
func TestThePageHasTheMeshOf175B(t *testing.T) {
	page, err := os.ReadFile("../docs/parallel.md")
	if err != nil {
		t.Fatal(err)
	}
	s := config.Sources{Recipe: "gpt3-175b", Planning: true, Overrides: []string{
		"parallel.tensor=8", "parallel.pipeline=4", "parallel.zero=1", "parallel.ranks=1024", "model.vocab=51200",
	}}
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p, err := For(cfg, machine{})
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 15*time.Second { // one on an idle core
		t.Errorf("the plan of 1,024 ranks takes %v", d)
	}
	for i, x := range p.Ranks.Mesh {
		needs := fmt.Sprintf("| %d | %d–%d |", i, x.First, x.Last)
		for _, n := range x.Totals {
			needs += fmt.Sprintf(" %s |", units.Commas(n))
			if fits := n <= 80e9; fits != (n != x.Totals[0]) {
				t.Errorf("stage %d needs %d bytes: fits 80 GB: %v", i, n, fits)
			}
		}
		sends := fmt.Sprintf("| %d |", i)
		for _, n := range []int64{
			x.Sent.Tensor, x.Sent.Pipeline, x.Sent.Gradients, x.Sent.Weights, x.Activations, x.Whole,
		} {
			sends += fmt.Sprintf(" %s |", units.Commas(n))
		}
		for _, row := range []string{needs, sends} {
			if !strings.Contains(string(page), "\n"+row+"\n") {
				t.Errorf("docs/parallel.md does not have, of the mesh:\n%s", row)
			}
		}
	}
}
