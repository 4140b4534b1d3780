package model

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/precision"
	"anneal/tensor"
)

// A sharing is how ranks share the tokens of rows and the layers of a model.
type sharing struct {
	contexts, tensors int
	ring              bool
}

// share returns the ranks of a model that share it and its batch of two rows, and the whole batch on the host.
func share(t *testing.T, c Config, policy string, x sharing) (list []*bench, whole HostBatch) {
	if err := errors.Join(c.CheckContext(x.contexts, x.tensors, x.ring), c.CheckTensors(x.tensors)); err != nil {
		t.Fatal(err)
	}
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 2
	whole = sample(rows, c.Context, c.Vocab)
	columns, lines := make([]*meetings, x.tensors), make([]*meetings, x.contexts)
	for i := range columns {
		columns[i] = newMeetings(x.contexts)
	}
	for i := range lines {
		lines[i] = newMeetings(x.tensors)
	}
	for rank := range x.contexts * x.tensors {
		chunk, cut := rank/x.tensors, rank%x.tensors
		dev, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(dev.Close)
		y := &bench{dev: dev, params: arenaOf(t, 8<<20), grads: arenaOf(t, 8<<20), batch: arenaOf(t, 1<<20),
			keep: arenaOf(t, 16<<20), temp: arenaOf(t, 16<<20)}
		spoil(y.temp)
		y.m = DeclarePart(c, Part{Tensor: cut, Tensors: x.tensors, Sequence: true})
		y.m.Allocate(MemoryOf(device.Host{}, p, y.params, y.grads))
		y.m.Init(1)
		y.tape = autograd.NewTape(dev, p.Types(), y.keep, y.temp)
		y.tape.Ring = x.ring
		if x.tensors > 1 {
			y.tape.Tensor, y.tape.Sequence = &seat{meetings: lines[chunk], rank: cut, inPlace: true}, true
		}
		if x.contexts > 1 {
			y.tape.Context = &seat{meetings: columns[cut], rank: chunk, inPlace: chunk%2 == 0}
			z := autograd.Zigzag{Rank: chunk, Ranks: x.contexts, Len: c.Context}
			y.b = NewBatchPart(y.batch, p, c, rows, z, x.ring)
			y.b.Take(whole)
		} else {
			y.b = NewBatch(y.batch, p, rows, c.Context)
			copy(y.b.Host.Tokens, whole.Tokens)
			copy(y.b.Host.Targets, whole.Targets)
			copy(y.b.Host.Start, whole.Start)
			copy(y.b.Host.Pos, whole.Pos)
		}
		y.b.ZLoss = 1e-2
		y.b.Seq.Noise = autograd.Noise{Seed: 5, Step: 3, Row: 32}
		list = append(list, y)
	}
	return list, whole
}

// spoil fills the first megabyte of memory with NaN: what is used of it must be written first.
func spoil(a *tensor.Arena) {
	x := a.New(tensor.U8, 1<<20)
	for i := range x.Raw() {
		x.Raw()[i] = 0xff
	}
	a.Release(0)
}

// sample returns random tokens in rows of t, with two or three documents each.
func sample(rows, t, vocab int) (b HostBatch) {
	rng := tensor.NewRNG(2, tensor.PurposeData, 0)
	for i := range rows * t {
		start := int32(0)
		for _, at := range []int{t/2 - 3, t - 5 - i/t} {
			if i%t >= at {
				start = int32(at)
			}
		}
		b.Tokens = append(b.Tokens, int32(rng.Uint32(uint64(2*i))%uint32(vocab)))
		b.Targets = append(b.Targets, int32(rng.Uint32(uint64(2*i+1))%uint32(vocab)))
		b.Start, b.Pos = append(b.Start, start), append(b.Pos, int32(i%t)-start)
	}
	b.Targets[1] = -100
	return b
}

// together makes the gradients of all ranks.
func together(list []*bench) {
	var group sync.WaitGroup
	for _, y := range list {
		group.Go(func() {
			y.gradients()
			for _, unit := range y.m.UnitParams() {
				y.m.SumPartial(y.tape, unit)
			}
		})
	}
	group.Wait()
}

// sameAs holds the losses, and the sums of the gradients of the ranks that have the same weights, against one rank's.
func sameAs(t *testing.T, list []*bench, one *bench, x sharing, limit float64) {
	t.Helper()
	losses := make([]float64, one.b.Losses.Len())
	for _, y := range list {
		for i := range y.b.Losses.Len() {
			at := i
			if y.b.Seq.Parts != nil {
				at = y.b.Seq.Parts.Token(i)
			}
			losses[at] = y.b.Losses.Float64(i)
		}
	}
	if d := differs(losses, numbers(&one.b.Losses)); !(d <= limit) {
		t.Errorf("%+v: losses differ by %.2g", x, d)
	}
	for i, p := range one.m.params {
		sum := make([]float64, p.Len())
		for rank, y := range list {
			q, seen := y.m.params[i], rank%x.tensors
			q.Region.Runs(q.Shape, func(local, global, n int) {
				for k := range n {
					if !owned(list[:seen], i, global+k) {
						sum[global+k] += q.Grad.Float64(local + k)
					}
				}
			})
		}
		if d := differs(sum, numbers(&p.Grad)); !(d <= limit) {
			t.Errorf("%+v: the gradient of %s differs by %.2g", x, p.Name, d)
		}
	}
}

// owned reports whether one of some ranks has an element of parameter i.
func owned(list []*bench, i, element int) (has bool) {
	for _, y := range list {
		p := y.m.params[i]
		p.Region.Runs(p.Shape, func(_, global, n int) { has = has || global <= element && element < global+n })
	}
	return has
}

// contextModels are small models of every family, with every pattern.
func contextModels() map[string]Config {
	list := cutModels()
	for name, c := range list {
		c.Context = 32
		list[name] = c
	}
	for _, pattern := range []string{"window:5", "longformer:8:2", "bigbird:1:1:1:4:5", "strided:4", "fixed:8:2",
		"longnet:8/1:16/2", "longformer:4:2:dilation=1/3:heads=1", "longnet:8:depth"} {
		c := list["llama"]
		c.Attention = seen(pattern)
		list[pattern] = c
	}
	c := list["llama"]
	c.KVHeads, c.HeadDim, c.KVLoraRank, c.RopeHeadDim = c.Heads, 6, 5, 2
	list["latent"] = c
	c = list["linear"]
	c.Attention = seen("gla")
	list["gla"] = c
	c = list["alibi"]
	c.Attention = seen("window:9,full")
	list["alibi in windows"] = c
	return list
}

// Losses and gradients of ranks that share rows are those of one rank, with ring attention and with Ulysses.
func TestContextShardsAreTheModel(t *testing.T) {
	for name, c := range contextModels() {
		t.Run(name, func(t *testing.T) {
			one, _ := share(t, c, "fp64", sharing{1, 1, false})
			together(one)
			for _, x := range []sharing{{2, 1, true}, {4, 1, true}, {2, 1, false}, {4, 1, false}, {8, 1, true}} {
				if c.CheckContext(x.contexts, 1, x.ring) != nil {
					continue
				}
				list, _ := share(t, c, "fp64", x)
				together(list)
				sameAs(t, list, one[0], x, 1e-12)
			}
		})
	}
}

// Evaluation has the losses of training.
func TestEvaluationOfContextShards(t *testing.T) {
	for _, name := range []string{"llama", "linear", "recompute"} {
		for _, ring := range []bool{true, false} {
			list, _ := share(t, contextModels()[name], "fp64", sharing{2, 1, ring})
			together(list)
			var group sync.WaitGroup
			for rank, y := range list {
				want := numbers(&y.b.Losses)
				group.Go(func() {
					y.tape.Reset(false)
					y.m.Loss(y.tape, y.b)
					if got := numbers(&y.b.Losses); !slices.Equal(got, want) {
						t.Errorf("%s, ring %v: rank %d evaluates to %v, trains at %v", name, ring, rank, got, want)
					}
				})
			}
			group.Wait()
		}
	}
}

// Layers and rows can be shared at once.
func TestContextAndTensorShardsAreTheModel(t *testing.T) {
	models := contextModels()
	for _, name := range []string{"llama", "anneal", "gpt2", "alibi in windows"} {
		c := models[name]
		one, _ := share(t, c, "fp64", sharing{1, 1, false})
		together(one)
		for _, x := range []sharing{{2, 2, true}, {2, 2, false}, {4, 2, true}} {
			list, _ := share(t, c, "fp64", x)
			together(list)
			sameAs(t, list, one[0], x, 1e-12)
		}
	}
}

// In other precisions the numbers are close.
func TestContextShardsInEveryPrecision(t *testing.T) {
	c := contextModels()["alibi in windows"]
	c.Context = 512 // more than a tile of every kernel
	for policy, limit := range map[string]float64{"fp32": 1e-5, "bf16": 0.05, "fp16": 5e-3} {
		one, _ := share(t, c, policy, sharing{1, 1, false})
		together(one)
		for _, x := range []sharing{{4, 1, true}, {4, 1, false}} {
			list, _ := share(t, c, policy, x)
			together(list)
			sameAs(t, list, one[0], x, limit)
		}
	}
}

// What ranks cannot share is refused with the key that is in the way.
func TestCheckContext(t *testing.T) {
	models := contextModels()
	for name, x := range map[string]struct {
		c          Config
		n, tensors int
		ring       bool
		key        string
	}{
		"fits":                  {models["llama"], 8, 1, true, ""},
		"length":                {models["llama"], 3, 1, true, "model.context"},
		"heads":                 {models["llama"], 16, 1, false, "parallel.attention"},
		"heads of tensor ranks": {models["llama"], 4, 4, false, "parallel.attention"},
		"linear":                {models["linear"], 4, 1, true, ""},
		"linear without heads":  {models["linear"], 16, 1, true, "parallel.context"},
	} {
		var e *CutError
		err := x.c.CheckContext(x.n, x.tensors, x.ring)
		if errors.As(err, &e) != (x.key != "") || e != nil && e.Key != x.key {
			t.Errorf("%s: %v, want %q", name, err, x.key)
		}
	}
}

// A blank peer sends nothing and receives what it has room for: memory is measured without anybody else.
type blank struct{ rank, size int }

func (b blank) Rank() int     { return b.rank }
func (b blank) Size() int     { return b.size }
func (b blank) InPlace() bool { return false }
func (b blank) Release()      {}
func (b blank) Exchange(out, room []tensor.Tensor) []tensor.Tensor {
	in := slices.Clone(room)
	in[b.rank] = out[b.rank]
	return in
}

// activations returns what a rank needs to train on one row: what it keeps for backward, and temporaries.
func activations(t *testing.T, c Config, rank int, x sharing) (keep, temp int) {
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	arenas := [5]*tensor.Arena{}
	for i := range arenas {
		arenas[i] = tensor.NewMeasure("test")
	}
	m := New(c, MemoryOf(device.Null{}, p, arenas[0], arenas[1]))
	b := NewBatch(arenas[2], p, 1, c.Context)
	tape := autograd.NewTape(device.Null{}, p.Types(), arenas[3], arenas[4])
	if x.contexts > 1 {
		z := autograd.Zigzag{Rank: rank, Ranks: x.contexts, Len: c.Context}
		b = NewBatchPart(arenas[2], p, c, 1, z, x.ring)
		tape.Context, tape.Ring = blank{rank, x.contexts}, x.ring
	}
	tape.Reset(true)
	m.Loss(tape, b)
	tape.Backward()
	return arenas[3].Peak(), arenas[4].Peak()
}

// A row of 131,072 tokens on 4 ranks keeps for backward what one rank keeps for 32,768. Temporaries of ring attention
// are frames of one layer; those of Ulysses are copies of its projection.
func TestMemoryOfALongRowIsShared(t *testing.T) {
	c := Config{
		Layers: 8, Dim: 512, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 1376, Context: 32768, Vocab: 8192,
		TieEmbeddings: true, RopeTheta: 10000, NormEps: 1e-5, InitStd: 0.02,
	}
	keep, temp := activations(t, c, 0, sharing{contexts: 1})
	c.Context *= 4
	for _, ring := range []bool{true, false} {
		for rank := range 4 {
			k, more := activations(t, c, rank, sharing{4, 1, ring})
			limit := map[bool]float64{true: 1.15, false: 1.02}[ring]
			if float64(k+more) > limit*float64(keep+temp) {
				t.Errorf("ring %v: rank %d needs %d bytes, one rank %d: more than %g times as much", ring, rank, k+more,
					keep+temp, limit)
			}
			if k != keep {
				t.Errorf("ring %v: rank %d keeps %d bytes, one rank %d", ring, rank, k, keep)
			}
		}
	}
}

// The scratch memory and the layouts of parts are known before they are used: what the device has afterwards, to the
// byte.
func TestAttentionPartBytesAreWhatTheDeviceTakes(t *testing.T) {
	for _, name := range []string{"llama", "alibi in windows", "bigbird:1:1:1:4:5"} {
		for _, ring := range []bool{true, false} {
			c := contextModels()[name]
			c.Context = 1024
			list, _ := share(t, c, "bf16", sharing{2, 1, ring})
			together(list)
			one, _ := share(t, c, "bf16", sharing{1, 1, ring})
			together(one)
			types := autograd.Types{Activation: tensor.BF16}
			_, alone := one[0].m.AttentionBytes(one[0].dev, types, 2*c.Context)
			rest := one[0].dev.ScratchBytes() - int(alone) // of matrix products
			for _, y := range list {
				_, want := y.m.AttentionPartBytes(y.dev, types, y.b.Seq.Parts)
				if got := y.dev.ScratchBytes() - rest; got != int(want) {
					t.Errorf("%s, ring %v: attention took %d bytes of scratch memory, want %d", name, ring, got, want)
				}
			}
		}
	}
}
