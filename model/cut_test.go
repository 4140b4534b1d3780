package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/precision"
	"anneal/tensor"
)

// meetings is where the ranks of a test meet: goroutines that exchange tensors.
type meetings struct {
	mu      sync.Mutex
	changed sync.Cond
	out     [][]tensor.Tensor // by rank
	waiting int
	round   int
}

func newMeetings(n int) *meetings {
	x := &meetings{out: make([][]tensor.Tensor, n)}
	x.changed.L = &x.mu
	return x
}

// meet waits until all ranks have called it.
func (x *meetings) meet() {
	x.mu.Lock()
	defer x.mu.Unlock()
	round := x.round
	if x.waiting++; x.waiting == len(x.out) {
		x.waiting = 0
		x.round++
		x.changed.Broadcast()
	}
	for round == x.round {
		x.changed.Wait()
	}
}

// seat is the table as one rank sees it. It implements autograd.Peers.
type seat struct {
	*meetings
	rank    int
	inPlace bool
	in      []tensor.Tensor
	calls   int // of Exchange
	lost    int // the call, from 1, that brings zeros; 0 for none
}

func (s *seat) Rank() int     { return s.rank }
func (s *seat) Size() int     { return len(s.out) }
func (s *seat) InPlace() bool { return s.inPlace }

func (s *seat) Exchange(out, room []tensor.Tensor) []tensor.Tensor {
	s.out[s.rank] = out
	s.meet()
	s.in = s.in[:0]
	s.calls++
	for r := range s.out {
		from := s.out[r][s.rank]
		if s.calls == s.lost && r != s.rank && !from.IsZero() {
			from = tensor.View(from.DType(), make([]byte, from.Bytes()), from.Shape()...)
		}
		if !s.inPlace && r != s.rank && !from.IsZero() {
			if from.DType() != room[r].DType() || !slices.Equal(from.Shape(), room[r].Shape()) {
				panic(fmt.Sprintf("%v arrives where room for %v is", &from, &room[r]))
			}
			copy(room[r].Raw(), from.Raw())
			from = room[r]
		}
		s.in = append(s.in, from)
	}
	return s.in
}

func (s *seat) Release() { s.meet() }

// team is the ranks of a model that is cut, with one batch that all of them have.
type team struct {
	t      *testing.T
	ranks  []*bench
	spoilt bool // ranks may disagree
}

// newTeam cuts the model for n ranks; n = 1 is the whole model.
func newTeam(t *testing.T, c Config, policy string, n int, sequence bool) *team {
	x := &team{t: t}
	meet := newMeetings(n)
	if err := c.CheckTensors(n); err != nil {
		t.Fatal(err)
	}
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	for r := range n {
		dev, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(dev.Close)
		y := &bench{dev: dev, params: arenaOf(t, 8<<20), grads: arenaOf(t, 8<<20), batch: arenaOf(t, 1<<20),
			keep: arenaOf(t, 16<<20), temp: arenaOf(t, 16<<20)}
		y.m = DeclarePart(c, Part{Tensor: r, Tensors: n, Sequence: sequence})
		y.m.Allocate(MemoryOf(device.Host{}, p, y.params, y.grads))
		y.m.Init(1)
		y.b = NewBatch(y.batch, p, 2, 8)
		rng := tensor.NewRNG(2, tensor.PurposeData, 0)
		for i := range 16 {
			y.b.Tokens.I32()[i] = int32(rng.Uint32(uint64(2*i)) % uint32(c.Vocab))
			y.b.Targets.I32()[i] = int32(rng.Uint32(uint64(2*i+1)) % uint32(c.Vocab))
			if i%8 >= 4 {
				y.b.Start.I32()[i] = 4 // two documents a row
			}
		}
		y.b.Targets.I32()[1] = -100
		y.b.SetPositions(true)
		y.b.ZLoss = 1e-2
		y.b.Seq.Noise = autograd.Noise{Seed: 5, Step: 3, Row: 32}
		y.tape = autograd.NewTape(dev, p.Types(), y.keep, y.temp)
		if n > 1 {
			y.tape.Tensor, y.tape.Sequence = &seat{meetings: meet, rank: r, inPlace: r%2 == 0 || !sequence}, sequence
		}
		x.ranks = append(x.ranks, y)
	}
	return x
}

// step makes the losses and gradients on all ranks.
func (x *team) step() {
	var group sync.WaitGroup
	for _, y := range x.ranks {
		group.Go(func() {
			y.gradients()
			for _, unit := range y.m.UnitParams() {
				y.m.SumPartial(y.tape, unit)
			}
		})
	}
	group.Wait()
}

// whole returns the gradient of parameter i of the whole model, of which ranks have regions. Where several have an
// element they must agree to the bit.
func (x *team) whole(i int) []float64 {
	p := x.ranks[0].m.params[i]
	all := make([]float64, p.Len())
	have := make([]bool, p.Len())
	for _, y := range x.ranks {
		q := y.m.params[i]
		if !q.HasGrad() {
			continue
		}
		q.Region.Runs(q.Shape, func(local, global, n int) {
			for k := range n {
				g := q.Grad.Float64(local + k)
				switch {
				case !have[global+k]:
					all[global+k], have[global+k] = g, true
				case all[global+k] != g && !x.spoilt:
					x.t.Errorf("ranks disagree about element %d of the gradient of %s: %v and %v", global+k, q.Name,
						all[global+k], g)
				}
			}
		})
	}
	return all
}

// numbers returns the elements of a tensor.
func numbers(t *tensor.Tensor) (list []float64) {
	for i := range t.Len() {
		list = append(list, t.Float64(i))
	}
	return list
}

// differs returns the largest difference of two lists relative to the largest number.
func differs(a, b []float64) float64 {
	most, top := 0.0, 1e-300
	for i := range a {
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			return math.NaN()
		}
		most, top = max(most, math.Abs(a[i]-b[i])), max(top, math.Abs(b[i]))
	}
	return most / top
}

// differs returns the largest difference of a loss or a gradient from those of another team, of one rank.
func (x *team) differs(one *team) float64 {
	most := 0.0
	note := func(d float64) {
		if math.IsNaN(d) || d > most {
			most = d
		}
	}
	for _, y := range x.ranks {
		note(differs(numbers(&y.b.Losses), numbers(&one.ranks[0].b.Losses)))
	}
	for i := range one.ranks[0].m.params {
		note(differs(x.whole(i), one.whole(i)))
	}
	return most
}

// check compares losses, log Z and all gradients with those of another team, of one rank.
func (x *team) check(one *team, limit float64) {
	x.t.Helper()
	want := one.ranks[0]
	for r, y := range x.ranks {
		if d := differs(numbers(&y.b.Losses), numbers(&want.b.Losses)); !(d <= limit) {
			x.t.Errorf("losses of rank %d of %d differ by %.2g", r, len(x.ranks), d)
		}
		if d := differs(numbers(&y.b.LogZ), numbers(&want.b.LogZ)); !(d <= limit) {
			x.t.Errorf("log Z of rank %d of %d differs by %.2g", r, len(x.ranks), d)
		}
		if y.tape.Routing != x.ranks[0].tape.Routing {
			x.t.Errorf("routing losses of rank %d are %v, of the first %v", r, y.tape.Routing, x.ranks[0].tape.Routing)
		}
	}
	for i, p := range want.m.params {
		if d := differs(x.whole(i), one.whole(i)); !(d <= limit) {
			x.t.Errorf("%d ranks: the gradient of %s differs by %.2g", len(x.ranks), p.Name, d)
		}
	}
}

// cutModels are small models of every family, and what tensor parallelism has to do with.
func cutModels() map[string]Config {
	base := small
	base.Heads, base.KVHeads, base.Dim, base.FFN, base.Vocab = 8, 4, 24, 32, 37
	change := func(f func(c *Config)) Config {
		c := base
		f(&c)
		return c
	}
	gpt2 := func(c *Config) {
		c.Family, c.Activation, c.KVHeads, c.Positions = "gpt2", "gelu", c.Heads, schemes("learned")
	}
	return map[string]Config{
		"llama":                 base,
		"untied":                change(func(c *Config) { c.TieEmbeddings = false }),
		"shared key-value head": change(func(c *Config) { c.KVHeads, c.QKNorm = 1, true }),
		"gpt2":                  change(gpt2),
		"dropout":               change(func(c *Config) { gpt2(c); c.Dropout = 0.2 }),
		"stochastic depth":      change(func(c *Config) { c.Layers, c.StochasticDepth, c.Dropout = 4, 0.6, 0.1 }),
		"sinks":                 change(func(c *Config) { c.AttentionSinks = true }),
		"softcap of scores":     change(func(c *Config) { c.AttentionSoftcap = 0.5 }),
		"softcap":               change(func(c *Config) { c.LogitSoftcap = 3 }),
		"anneal": change(func(c *Config) {
			c.Family, c.Activation, c.QKNorm, c.X0Skip, c.ValueEmbeddings = "anneal", "relu2", true, true, "all"
			c.KVHeads, c.TieEmbeddings = 2, false
		}),
		"gemma3": change(func(c *Config) {
			c.Family, c.Activation, c.QKNorm, c.Dropout = "gemma3", "geglu", true, 0.1
			c.Attention = seen("window:4,full")
		}),
		"qwen2": change(func(c *Config) { c.QKVBias, c.KVHeads = true, 1 }),
		"qwen3_moe": change(func(c *Config) {
			c.Family, c.QKNorm, c.Experts, c.ExpertsPerToken, c.ExpertFFN = "qwen3_moe", true, 4, 2, 16
			c.SharedExpertFFN, c.RouterAuxLoss, c.RouterZLoss, c.NormaliseExperts = 24, 0.1, 0.1, true
		}),
		"global projections": change(func(c *Config) {
			c.Attention, c.LongformerGlobalProjections = seen("longformer:3:3,window:2"), true
			c.KVHeads, c.QKVBias, c.QKNorm = 1, true, true
		}),
		"mup":    change(func(c *Config) { setMuP(c, 12, 2, 16, 1, 1.5, 3) }),
		"alibi":  change(func(c *Config) { c.Positions = schemes("alibi") }),
		"linear": change(func(c *Config) { c.Attention, c.KVHeads = seen("linear:gated"), 2 }),
		"delta":  change(func(c *Config) { c.Attention, c.KVHeads = seen("delta:gated,delta"), 2 }),
		"short convolutions": change(func(c *Config) {
			c.Attention, c.KVHeads, c.ShortConv = seen("delta:gated,full"), 2, 4
		}),
		"recompute":           change(func(c *Config) { c.Layers, c.Recompute = 3, Layout{Whole: 2, Segment: 2} }),
		"recompute attention": change(func(c *Config) { c.Recompute = Layout{Attention: 2} }),
	}
}

// Losses, log Z and every gradient of a model that is cut are those of the whole model, with sequence parallelism and
// without.
func TestTensorShardsAreTheModel(t *testing.T) {
	for name, c := range cutModels() {
		t.Run(name, func(t *testing.T) {
			one := newTeam(t, c, "fp64", 1, false)
			one.step()
			for _, n := range []int{2, 4, 8} {
				for _, sequence := range []bool{true, false} {
					x := newTeam(t, c, "fp64", n, sequence)
					x.step()
					x.check(one, 1e-12)
				}
			}
		})
	}
}

// Gradients of weights can be put off until those that peers make together are summed.
func TestTensorShardsPutGradientsOff(t *testing.T) {
	c := cutModels()["shared key-value head"]
	one := newTeam(t, c, "fp64", 1, false)
	one.step()
	x := newTeam(t, c, "fp64", 2, true)
	for _, y := range x.ranks {
		y.tape.Deferred = autograd.NewDeferred(arenaOf(t, 0), arenaOf(t, 1<<20))
	}
	x.step()
	for _, y := range x.ranks {
		y.tape.RunDeferred()
	}
	x.check(one, 1e-12)
}

// Whatever peers fail to add to what rank 0 receives, somebody sees it: every exchange counts.
func TestNoExchangeIsIdle(t *testing.T) {
	c := cutModels()["shared key-value head"]
	one := newTeam(t, c, "fp64", 1, false)
	one.step()
	for _, sequence := range []bool{true, false} {
		x := newTeam(t, c, "fp64", 2, sequence)
		x.step()
		x.spoilt = true
		seat := x.ranks[0].tape.Tensor.(*seat)
		calls := seat.calls
		for lost := range calls {
			seat.calls, seat.lost = 0, lost+1
			x.step()
			if x.differs(one) < 1e-9 {
				t.Errorf("sequence parallelism %v: exchange %d of %d can be left out", sequence, lost, calls)
			}
		}
	}
}

// The same step has the same bits each time, and in other precisions numbers close to those of the whole model.
func TestTensorShardsInEveryPrecision(t *testing.T) {
	for policy, limit := range map[string]float64{ // a number that falls to the other side in FP8 moves by an eighth
		"fp32": 1e-5, "tf32": 2e-3, "bf16": 0.05, "fp16": 5e-3, "bf16_sr": 0.05, "fp8": 0.3,
	} {
		c := cutModels()["gemma3"]
		one := newTeam(t, c, policy, 1, false)
		one.step()
		for _, sequence := range []bool{true, false} {
			x := newTeam(t, c, policy, 2, sequence)
			x.step()
			d := x.differs(one)
			if !(d <= limit) {
				t.Errorf("%s: numbers differ by %.2g", policy, d)
			}
			var first [][]float64
			for i := range one.ranks[0].m.params {
				first = append(first, x.whole(i))
			}
			x.step()
			for i, p := range one.ranks[0].m.params {
				if !slices.Equal(first[i], x.whole(i)) {
					t.Errorf("%s: the gradient of %s has other bits the second time", policy, p.Name)
				}
			}
		}
	}
}

// What cannot be cut is refused with the key that is in the way and a number of ranks that works.
func TestCheckTensors(t *testing.T) {
	for _, x := range []struct {
		change   func(*Config)
		n        int
		key, try string
	}{
		{func(*Config) {}, 4, "", ""},
		{func(*Config) {}, 3, "model.heads", "parallel.tensor = 2"},
		{func(c *Config) { c.Heads, c.KVHeads = 12, 6 }, 4, "model.kv_heads", "parallel.tensor = 3"},
		{func(c *Config) { c.FFN = 30 }, 4, "model.ffn", "parallel.tensor = 3"},
		{func(c *Config) { c.Family, c.ExpertFFN = "qwen3_moe", 6 }, 4, "model.expert_ffn", "parallel.tensor = 3"},
		{func(c *Config) { c.Vocab = 3 }, 4, "model.vocab", "parallel.tensor = 3"},
	} {
		c := cutModels()["llama"]
		x.change(&c)
		var e *CutError
		if err := c.CheckTensors(x.n); errors.As(err, &e) != (x.key != "") {
			t.Errorf("%d ranks: %v", x.n, err)
		} else if e != nil && (e.Key != x.key || e.Try != x.try) {
			t.Errorf("%d ranks: %s stands in the way, %s is proposed; want %s, %s", x.n, e.Key, e.Try, x.key, x.try)
		}
	}
}
