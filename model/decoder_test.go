package model

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

var small = Config{
	Layers: 2, Dim: 16, Heads: 4, KVHeads: 2, HeadDim: 4, FFN: 24, Context: 8, Vocab: 31,
	TieEmbeddings: true, RopeTheta: 10000, NormEps: 1e-5, InitStd: 0.2,
}

// bench is a model with a batch, ready to run.
type bench struct {
	m    *Decoder
	b    *Batch
	tape *autograd.Tape
	dev  device.Device
	foot Footprint

	params, grads, batch, keep, temp *tensor.Arena
}

// peaks returns what was really used of each arena.
func (x *bench) peaks() Footprint {
	return Footprint{
		Params: x.params.Peak(), Grads: x.grads.Peak(), Keep: x.keep.Peak(), Temp: x.temp.Peak(), Batch: x.batch.Peak(),
	}
}

func newBench(t testing.TB, c Config, policy string, rows, tokens int) *bench {
	t.Helper()
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	f, eval := Measure(c, p, rows, tokens, true), Measure(c, p, rows, tokens, false)
	arena := func(size int) *tensor.Arena {
		a, err := tensor.NewArena("test", size)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	x := &bench{
		dev: dev, foot: f, params: arena(f.Params), grads: arena(f.Grads), batch: arena(f.Batch),
		keep: arena(max(f.Keep, eval.Keep)), temp: arena(max(f.Temp, eval.Temp)),
	}
	x.m = New(c, MemoryOf(device.Host{}, p, x.params, x.grads))
	x.m.Init(1)
	x.b = NewBatch(x.batch, p, rows, tokens)
	rng := tensor.NewRNG(2, tensor.PurposeData, 0)
	for i := range rows * tokens {
		x.b.Tokens.I32()[i] = int32(rng.Uint32(uint64(2*i)) % uint32(c.Vocab))
		x.b.Targets.I32()[i] = int32(rng.Uint32(uint64(2*i+1)) % uint32(c.Vocab))
		if i%tokens >= tokens/2 {
			x.b.Start.I32()[i] = int32(tokens / 2) // two documents a row
		}
	}
	x.b.Targets.I32()[1] = -100
	x.b.SetPositions(true)
	x.tape = autograd.NewTape(dev, p.Types(), x.keep, x.temp)
	return x
}

func (x *bench) loss() float64 {
	x.tape.Reset(false)
	x.m.Loss(x.tape, x.b)
	return x.dev.Sum(&x.b.Losses)
}

func (x *bench) gradients() {
	for _, p := range x.m.Params() {
		p.ResetGrad()
	}
	x.tape.Reset(true)
	x.m.Loss(x.tape, x.b)
	x.tape.Backward()
}

// Central differences in float64 through the whole model, for coordinates of every parameter.
func TestGradientsMatchFiniteDifferences(t *testing.T) {
	for _, variant := range []struct {
		name   string
		change func(*Config)
	}{
		{"tied", func(*Config) {}},
		{"untied", func(c *Config) { c.TieEmbeddings = false }},
		{"qk-norm", func(c *Config) { c.QKNorm = true }},
		{"multi-head", func(c *Config) { c.KVHeads = c.Heads }},
		{"mup", func(c *Config) { setMuP(c, 4, 2, 12, 0, 1.5, 3) }},
	} {
		t.Run(variant.name, func(t *testing.T) {
			c := small
			variant.change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

// checkGradients compares the gradients of a step in float64 with central differences.
func checkGradients(t *testing.T, x *bench) {
	t.Helper()
	for i, p := range x.m.Params() {
		if p.Frozen {
			continue
		}
		rng := tensor.NewRNG(3, tensor.PurposeData, uint32(i))
		for n := range uint64(6) {
			checkGradient(t, x, p, int(rng.Uint32(n))%p.Value.Len())
		}
	}
}

// checkGradient compares element j of the gradient of p with a central difference.
func checkGradient(t *testing.T, x *bench, p *nn.Param, j int) {
	t.Helper()
	const eps = 1e-5
	w, g := p.Value.F64(), p.Grad.F64()
	at := w[j]
	difference := func(eps float64) float64 {
		w[j] = at + eps
		up := x.loss()
		w[j] = at - eps
		down := x.loss()
		w[j] = at
		return (up - down) / (2 * eps)
	}
	want := difference(eps)
	if math.Abs(g[j]-want) > 1e-6*(1+math.Abs(want)) { // where the loss bends much, to the fourth order
		want += (want - difference(2*eps)) / 3
	}
	if math.Abs(g[j]-want) > 1e-6*(1+math.Abs(want)) {
		t.Errorf("%s[%d]: gradient %v, finite difference %v", p.Name, j, g[j], want)
	}
}

// A second backward pass adds to gradients: two micro-batches of the same tokens give twice the gradient of one.
func TestMicroBatchesAddUp(t *testing.T) {
	x := newBench(t, small, "fp64", 2, 8)
	x.gradients()
	once := map[string][]float64{}
	for _, p := range x.m.Params() {
		once[p.Name] = append([]float64(nil), p.Grad.F64()...)
	}
	x.tape.Reset(true)
	x.m.Loss(x.tape, x.b)
	x.tape.Backward()
	for _, p := range x.m.Params() {
		for j, g := range p.Grad.F64() {
			if want := 2 * once[p.Name][j]; math.Abs(g-want) > 1e-12*(1+math.Abs(want)) {
				t.Fatalf("%s[%d] = %v after two passes, want %v", p.Name, j, g, want)
			}
		}
	}
}

// A row that packs two documents behind a mask gives each token the loss it has when its document stands alone.
func TestPackedDocumentsEqualSeparateOnes(t *testing.T) { checkPacking(t, small) }

func checkPacking(t *testing.T, c Config) {
	t.Helper()
	packed := newBench(t, c, "fp64", 1, 8)
	packed.loss()
	alone := newBench(t, c, "fp64", 2, 4)
	copy(alone.b.Tokens.I32(), packed.b.Tokens.I32())
	copy(alone.b.Targets.I32(), packed.b.Targets.I32())
	alone.b.SetPositions(false)
	alone.loss()
	for i := range 8 {
		if got, want := packed.b.Losses.F64()[i], alone.b.Losses.F64()[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("token %d: packed loss %v, alone %v", i, got, want)
		}
	}
}

// What Measure says on a device that computes nothing is what a real step uses, to the byte.
func TestMeasuredFootprintIsExact(t *testing.T) {
	for _, policy := range precision.Names() {
		c := small
		c.QKNorm, c.TieEmbeddings = policy == "bf16", policy == "fp32"
		x := newBench(t, c, policy, 3, 8)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		p, err := precision.Lookup(policy)
		if err != nil {
			t.Fatal(err)
		}
		forward := Measure(c, p, 3, 8, false)
		y := newBench(t, c, policy, 3, 8)
		y.loss()
		if got := y.peaks(); got != forward {
			t.Errorf("%s: a forward pass used %+v, measured %+v", policy, got, forward)
		}
	}
}

// Evaluation runs the code of training without recording: each token's loss has the same bits.
func TestForwardWithoutGradientsEqualsTraining(t *testing.T) {
	c := small
	c.QKNorm = true
	for _, policy := range precision.Names() {
		checkLossesWithoutTape(t, c, policy)
	}
}

// checkLossesWithoutTape: losses have the same bits whether a step is recorded or not.
func checkLossesWithoutTape(t *testing.T, c Config, policy string) {
	t.Helper()
	x := newBench(t, c, policy, 3, 8)
	x.gradients()
	recorded := bytes.Clone(x.b.Losses.Raw())
	x.loss()
	if !bytes.Equal(x.b.Losses.Raw(), recorded) {
		t.Errorf("%s: losses without recording differ from those with", policy)
	}
}

// checkFootprint: a step of each precision takes the memory that was measured before, and allocates no other.
func checkFootprint(t *testing.T, c Config) {
	t.Helper()
	for _, policy := range precision.Names() {
		x := newBench(t, c, policy, 3, 8)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := filetest.AllocsPerRun(3, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, policy := range []string{"bf16", "fp32"} {
		x := newBench(t, small, policy, 2, 8)
		x.gradients()
		if n := filetest.AllocsPerRun(10, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
	}
}

func TestForwardIsCausal(t *testing.T) {
	x := newBench(t, small, "fp64", 1, 8)
	for i := range x.b.Start.I32() {
		x.b.Start.I32()[i] = 0
	}
	x.loss()
	before := append([]float64(nil), x.b.Losses.F64()...)
	x.b.Tokens.I32()[5] = (x.b.Tokens.I32()[5] + 1) % int32(small.Vocab)
	x.loss()
	for i, l := range x.b.Losses.F64() {
		if same := l == before[i]; same != (i < 5) && i != 1 {
			t.Errorf("changing token 5 changes the loss of token %d: %v", i, !same)
		}
	}
}

func TestHFViewsCoverTheModel(t *testing.T) {
	c := small
	c.QKNorm, c.TieEmbeddings = true, false
	x := newBench(t, c, "fp32", 1, 8)
	total, seen := 0, map[string]bool{}
	for _, v := range x.m.HFViews() {
		if seen[v.Name] {
			t.Errorf("%s appears twice", v.Name)
		}
		seen[v.Name] = true
		total += v.Tensor.Len()
	}
	if int64(total) != x.m.Count() {
		t.Errorf("views hold %d weights, the model %d", total, x.m.Count())
	}
	for _, name := range []string{"self_attn.k_proj", "mlp.up_proj", "self_attn.q_norm"} {
		if full := fmt.Sprintf("model.layers.1.%s.weight", name); !seen[full] {
			t.Errorf("no %s", full)
		}
	}
}

// Rows cut into shorter sequences are a batch of such sequences, bit for bit: a token sees only what its piece has of
// its document.
func TestCutRowsAreSequencesOfTheirOwn(t *testing.T) {
	const rows, row, piece = 3, 8, 4
	for _, policy := range []string{"fp64", "bf16"} {
		x, y := newBench(t, small, policy, rows, row), newBench(t, small, policy, rows*row/piece, piece)
		for i := range rows * row {
			id := int32((7*i + 3) % small.Vocab)
			for _, b := range []*Batch{x.b, y.b} {
				b.Tokens.I32()[i], b.Targets.I32()[i] = id, (id*5+1)%int32(small.Vocab)
			}
			// In each row a document begins at token 2 and one at token 6.
			at := i % row
			x.b.Start.I32()[i] = map[bool]int32{true: int32(at+2)/4*4 - 2}[at >= 2]
			y.b.Start.I32()[i] = map[bool]int32{true: 2}[at%piece >= 2]
		}
		x.b.Cut(row, piece)
		for _, b := range []*bench{x, y} {
			b.b.SetPositions(true)
			b.m.Init(5)
			b.tape.Reset(true)
			b.m.Loss(b.tape, b.b)
			b.tape.Backward()
		}
		if !bytes.Equal(x.b.Losses.Raw(), y.b.Losses.Raw()) {
			t.Errorf("%s: losses differ", policy)
		}
		for i, p := range x.m.Params() {
			if !bytes.Equal(p.Grad.Raw(), y.m.Params()[i].Grad.Raw()) {
				t.Errorf("%s: gradients of %s differ", policy, p.Name)
			}
		}
		x.b.Cut(row, row)
		if x.b.T != row || x.b.Seq.Mask.Len != row {
			t.Errorf("joined again, sequences have %d tokens, want %d", x.b.T, row)
		}
	}
}
