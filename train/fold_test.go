package train

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"anneal/autograd"
	"anneal/config"
	"anneal/dataset"
	"anneal/precision"
	"anneal/tensor"
	"anneal/train/traintest"
)

// A crew is trainers of one run that share the micro-batches of each step: number i is made by worker i mod D. Every
// worker then folds all gradients in their order, in plain Go, and concludes the step by itself.
type crew []*Trainer

func (w crew) step(t *testing.T, src dataset.Source) {
	first := w[0]
	from, part := first.progress.Sample, first.ramps.Next(first.progress)
	gradients := make([][]*tensor.Tensor, part.Micro) // nil where a micro-batch does not reach a parameter
	var sums batchSums
	for i := range part.Micro {
		x := w[i%len(w)]
		s := x.makeMicro(t, src, from, part, i)
		for _, p := range x.model.Params() {
			var g *tensor.Tensor
			if p.HasGrad() {
				g = tensor.Of(slices.Clone(p.Grad.F32()))
			}
			gradients[i] = append(gradients[i], g)
		}
		sums.loss += s.loss
		sums.targets += s.targets
		sums.squaredLogZ += s.squaredLogZ
	}
	for _, x := range w {
		x.accum, x.length, x.tape.LossScale = part.Micro, part.Length, first.tape.LossScale
		for k, p := range x.model.Params() {
			foldInGo(x, &p.Param, gradients, k)
		}
		sums.squares = x.squaredNorm()
		if _, err := x.conclude(src, from, part, sums); err != nil {
			t.Fatal(err)
		}
	}
}

// foldInGo sets the gradient of parameter k to the fold of those of all micro-batches: blocks of them are summed,
// rounded, and added.
func foldInGo(x *Trainer, p *autograd.Param, gradients [][]*tensor.Tensor, k int) {
	x.dev.Zero(&p.Grad)
	p.Redirect(p.Grad, false)
	size := x.cfg.Parallel.SumBlock
	var blocks [][]float32
	for from := 0; from < len(gradients); from += size {
		var micros [][]float32
		for _, list := range gradients[from:min(from+size, len(gradients))] {
			if list[k] != nil {
				micros = append(micros, list[k].F32())
			}
		}
		if block := addUp(micros); block != nil {
			key := precision.WireKey{Seed: x.cfg.Seed, Step: x.progress.Step + 1, Param: k, Block: from / size}
			roundInGo(block, x.cfg.Parallel.Wire, key)
			blocks = append(blocks, block)
		}
	}
	if sum := addUp(blocks); sum != nil {
		copy(p.Grad.F32(), sum)
		p.Redirect(p.Grad, true)
	}
}

// addUp returns the sum of the terms, nil if there is none.
func addUp(terms [][]float32) []float32 {
	if len(terms) == 0 {
		return nil
	}
	sum := slices.Clone(terms[0])
	for _, term := range terms[1:] {
		for j, v := range term {
			sum[j] += v
		}
	}
	return sum
}

// roundInGo rounds g to the format of a wire.
func roundInGo(g []float32, wire string, k precision.WireKey) {
	switch wire {
	case "bf16":
		for i, v := range g {
			g[i] = tensor.BF16FromFloat32(v).Float32()
		}
	case "int8":
		rng := tensor.NewRNG(k.Seed, tensor.PurposeWire, uint32(k.Step))
		first := uint64(k.Param)<<48 + uint64(k.Block)<<32
		for from := 0; from < len(g); from += 256 {
			block, top := g[from:min(from+256, len(g))], float32(0)
			for _, v := range block {
				top = max(top, v, -v)
			}
			scale := top / 127
			for j, v := range block {
				if scale < 0x1p-110 {
					block[j] = float32(math.Copysign(0, -1))
					continue
				}
				i := from + j
				word := rng.Block(first + uint64(i/128*16+i%16))[i%128/32] >> (i % 32 / 16 * 16) & 0xffff
				code := (int(math.RoundToEven(float64(max(v, -v)*(65536/scale)))) + int(word)) >> 16
				code = min(code, 127)
				if v < 0 {
					code = -code
				}
				block[j] = float32(code) * scale
			}
		}
	}
}

// makeMicro makes the gradient of micro-batch i of the step from zero.
func (t *Trainer) makeMicro(tb testing.TB, src dataset.Source, from uint64, part Portion, i int) (sums batchSums) {
	for _, p := range t.Model().Params() {
		p.ResetGrad()
	}
	t.accum, t.length = part.Micro, part.Length
	t.tape.LossScale = t.lossFactor()
	if err := t.load(src, from+uint64(i*t.rows)); err != nil {
		tb.Fatal(err)
	}
	t.batch.Seq.Noise = autograd.Noise{Seed: t.cfg.Seed, Step: t.progress.Step + 1, Row: i * t.batch.Tokens.Len()}
	if err := t.propagate(true, true, nil); err != nil {
		tb.Fatal(err)
	}
	sums.loss, sums.targets = t.dev.Sum(&t.batch.Losses), t.data.Valid()
	if t.batch.ZLoss != 0 {
		sums.squaredLogZ = t.squares.Sum(t.dev, &t.batch.LogZ)
	}
	return sums
}

// The bits of a run do not depend on who makes the gradients of which micro-batches: a trainer alone, on any number of
// threads, ends with the weights and the state of 1, 2 and 3 workers whose gradients are folded by hand.
func TestAnyWorkersFoldToTheSameBits(t *testing.T) {
	data := traintest.Data(t)
	for _, overrides := range [][]string{
		{"precision=bf16"},
		{"precision=fp32", "model.tie_embeddings=false", "optimizer.name=muon"},
		{"precision=fp16", "model.family=gpt2", "train.z_loss=1e-3"},
		{"model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=16"},
		{"model.family=gemma3", "model.attention=window:8,full"},
		{"model.family=anneal", "model.dropout=0.1", "model.stochastic_depth=0.5"},
		{"precision=bf16_sr", "memory.recompute=every:1", "optimizer.name=adam8bit", "model.layers=3"},
		{"parallel.wire=bf16", "model.stochastic_depth=0.5"},
		{"parallel.wire=int8", "optimizer.name=muon", "model.tie_embeddings=false"},
		{"parallel.sum_block=2", "model.stochastic_depth=0.5"},
		{"parallel.sum_block=3", "parallel.wire=int8", "precision=fp16"},
		{"parallel.sum_block=8", "parallel.wire=bf16"},
		{"parallel.wire=int8", "train.micro_batch=20"}, // one micro-batch
		{"train.batch_ramp=256 over 1100 tokens", "model.attention=linear:gated,window:8", "model.qk_norm=true"},
	} {
		cfg := smallConfig(t, data, append(overrides, "train.batch_tokens=640")...)
		cfg.Model.Vocab = 300
		src := dataset.NewRandom(300, cfg.Model.Context, 5)
		alone := foldedRun(t, cfg, src, 2)
		for _, n := range []int{1, 2, 3} {
			var w crew
			for range n {
				w = append(w, trainerOf(t, cfg, 1))
			}
			for range cfg.Train.Steps {
				w.step(t, src)
			}
			for _, x := range w {
				if got := hashes(x); got != alone {
					t.Errorf("%v: %d workers end with %.8s, one trainer with %.8s", overrides, n, got, alone)
				}
			}
		}
	}
}

// foldedRun is the hashes after all steps of a trainer alone.
func foldedRun(t *testing.T, cfg *config.Config, src dataset.Source, threads int) [2]string {
	x := trainerOf(t, cfg, threads)
	for range cfg.Train.Steps {
		if _, err := x.Step(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	return hashes(x)
}

// A step that goes back from unit to unit makes the gradients of one that goes back at once.
func TestGoingBackByUnitsChangesNoBit(t *testing.T) {
	data := traintest.Data(t)
	for _, recompute := range []string{"none", "every:2", "selective"} {
		cfg := smallConfig(t, data, "model.layers=5", "memory.recompute="+recompute)
		cfg.Model.Vocab = 300
		src := dataset.NewRandom(300, cfg.Model.Context, 5)
		x := trainerOf(t, cfg, 2)
		part := x.ramps.Next(x.progress)
		x.makeMicro(t, src, 0, part, 0)
		var want [][]byte
		for _, p := range x.model.Params() {
			want = append(want, bytes.Clone(p.Grad.Raw()))
		}
		for _, p := range x.model.Params() {
			p.ResetGrad()
		}
		x.tape.Reset(true)
		x.model.Loss(x.tape, x.batch)
		x.tape.Backward()
		for i, p := range x.model.Params() {
			if !bytes.Equal(p.Grad.Raw(), want[i]) {
				t.Errorf("%s: the gradient of %s differs", recompute, p.Name)
			}
		}
	}
}
