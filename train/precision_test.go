package train

import (
	"context"
	"errors"
	"math"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/internal/filetest"
	"anneal/precision"
	"anneal/tensor"
)

// recipes are every precision, and those that come in several ways.
func recipes() map[string]func(*config.Config) {
	all := map[string]func(*config.Config){
		"fp8 delayed": func(c *config.Config) { c.Precision, c.FP8.Scaling, c.FP8.History = "fp8", "delayed", 16 },
		"fp8 block":   func(c *config.Config) { c.Precision, c.FP8.Scaling = "fp8", "block" },
		"fp8 mx":      func(c *config.Config) { c.Precision, c.FP8.Scaling = "fp8", "mx" },

		"fp8 attention": func(c *config.Config) { c.Precision, c.FP8.Attention = "fp8", true },
	}
	for _, name := range precision.Names() {
		all[name] = func(c *config.Config) { c.Precision = name }
	}
	return all
}

// meanLoss is the mean of the last ten losses of the fixture's 100 steps at a precision.
func meanLoss(t *testing.T, p parity, model int, recipe string) float64 {
	tr, src := parityTrainer(t, p, model, "bf16", 2, p.Batch, recipes()[recipe])
	sum := 0.0
	for s := range p.Steps {
		stats, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		if s >= p.Steps-10 {
			sum += stats.Loss / 10
		}
	}
	return sum
}

func TestNarrowPrecisionsEndWithinOnePercentOfBF16(t *testing.T) {
	p := loadParity(t)
	for i, c := range p.Configs {
		want := meanLoss(t, p, i, "bf16")
		for _, policy := range []string{"bf16_sr", "fp16", "tf32", "fp8", "fp8 delayed", "fp8 block", "fp8 mx",
			"fp8 attention"} {
			got := meanLoss(t, p, i, policy)
			t.Logf("%s: %s ends at %.5f, bf16 at %.5f: %+.2f %%", c.Name, policy, got, want, 100*(got/want-1))
			if !(math.Abs(got/want-1) <= 0.01) {
				t.Errorf("%s: %s ends at %v, bf16 at %v", c.Name, policy, got, want)
			}
		}
	}
}

// overflows puts an infinity into the gradient of the logits when it is due.
type overflows struct {
	device.Device
	due bool
}

func (d *overflows) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	d.Device.CrossEntropy(loss, dlogits, logits, targets, o)
	if d.due && !dlogits.IsZero() {
		dlogits.SetFloat64(1, math.Inf(1))
		d.due = false
	}
}

// The run with an overflow at one step is, bit for bit, the run that never saw that step's batch and goes on with half
// the scale: neither Adam's t nor the schedule has moved, and the guard knows nothing of it.
func TestAnOverflowSkipsExactlyOneUpdate(t *testing.T) {
	p := loadParity(t)
	const at, steps = 3, 8
	run := func(overflow bool) *Trainer {
		tr, src := parityTrainer(t, p, 0, "fp16", 2, 2)
		for s := range steps {
			if s == at && !overflow {
				tr.progress.Sample += uint64(tr.accum * tr.rows)
				tr.lossScale.Scale /= 2
				continue
			}
			if s == at {
				tr.dev = &overflows{tr.dev, true}
				tr.tape.Device = tr.dev
			}
			stats, err := tr.Step(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			if skipped := s == at; stats.Skipped != skipped || finite(stats.GradNorm) == skipped {
				t.Errorf("step %d: skipped %v with a gradient of norm %v", s, stats.Skipped, stats.GradNorm)
			}
		}
		return tr
	}
	got, want := run(true), run(false)
	if hashes(got) != hashes(want) {
		t.Error("the steps after the overflow give other weights than without its batch")
	}
	if got.Position().Updates != steps-1 || got.lossScale.Overflow != 1 || got.lossScale.Scale != 32768 {
		t.Errorf("%d updates, %d overflows, scale %v; want %d, 1, 32768",
			got.Position().Updates, got.lossScale.Overflow, got.lossScale.Scale, steps-1)
	}
	if g := got.guard; g.Skipped != 0 || g.Row != 0 || g.NonFinite != 0 {
		t.Errorf("the guard counted %+v", g)
	}
}

// A row of skips begins at its first one, whatever lies between: an overflow neither counts nor ends the row.
func TestARowOfSkipsBeginsAtTheFirst(t *testing.T) {
	tr, src := parityTrainer(t, loadParity(t), 0, "fp16", 2, 2)
	tr.guard = newGuard(config.Guard{MaxSkips: 2, SpikeZ: 1, Window: 2})
	for range 2 {
		tr.guard.accept(0, 1e-3, 1e-3) // so that every loss is a spike
	}
	for step := 1; step <= 3; step++ {
		if step == 2 {
			tr.dev = &overflows{tr.dev, true}
			tr.tape.Device = tr.dev
		}
		if e, err := tr.Step(context.Background(), src); err != nil || !e.Skipped {
			t.Fatal(e, err)
		}
	}
	g := tr.Guard()
	if !g.Exhausted() || g.Row != 2 || g.RowFirst != 1 {
		t.Errorf("skips at steps 1 and 3 are %d in a row from step %d on", g.Row, g.RowFirst)
	}
	s := tr.State()
	s.Guard.RowFirst = 0 // saved before it was counted
	if err := tr.Restore(s); err != nil || tr.Guard().RowFirst != 2 {
		t.Errorf("%v: restored, the row begins at step %d, want 2", err, tr.Guard().RowFirst)
	}
}

// loss_scale.hysteresis = 2 bears the first overflow of a run.
func TestHysteresisBearsAnOverflow(t *testing.T) {
	tr, src := optimizerTrainer(t, "adamw", "precision=fp16", "loss_scale.hysteresis=2", "loss_scale.init=16777216")
	for i, want := range []float64{1 << 24, 1 << 23} {
		tr.dev = &overflows{tr.dev, true}
		tr.tape.Device = tr.dev
		s, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Skipped || tr.lossScale.Scale != want {
			t.Errorf("overflow %d: skipped %v, scale %v; want %v", i+1, s.Skipped, tr.lossScale.Scale, want)
		}
	}
}

// NUM-9: gradients below half of FP16's smallest number, 2⁻²⁵, are lost, and a scale brings them back.
func TestFP16IsFrozenWithoutALossScale(t *testing.T) {
	p := loadParity(t)
	for _, c := range []struct {
		scale  float64
		frozen bool
	}{{0x1p-20, true}, {65536, false}} {
		tr, src := parityTrainer(t, p, 0, "fp16", 1, 2)
		tr.lossScale = precision.LossScale{Scale: c.scale}
		stats, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		if (stats.GradNorm == 0) != c.frozen {
			t.Errorf("scale %v: a gradient of norm %v", c.scale, stats.GradNorm)
		}
	}
}

// NUM-5 on a model: updates of a hundredth of a weight's last place move BF16 weights as far as they move FP32
// masters, in the mean over many weights. Rounded to nearest, they would not move one of them.
func TestStochasticRoundingKeepsSmallUpdates(t *testing.T) {
	p := loadParity(t)
	const steps = 10
	small := func(c *config.Config) { c.Optimizer.LR, c.Optimizer.WeightDecay = 1e-6, 0 }
	moved := func(precision string) (start, end []float64) {
		tr, src := parityTrainer(t, p, 0, precision, 2, p.Batch, small)
		flat := func() (all []float64) {
			for _, p := range tr.Model().Params() {
				for i := range p.Value.Len() {
					if p.Value.Rank() == 2 {
						all = append(all, p.Value.Float64(i))
					}
				}
			}
			return all
		}
		start = flat()
		for range steps {
			if _, err := tr.Step(context.Background(), src); err != nil {
				t.Fatal(err)
			}
		}
		return start, flat()
	}
	from, to := moved("bf16")
	narrowFrom, narrowTo := moved("bf16_sr")
	along, length, kept := 0.0, 0.0, 0
	for i := range from {
		d := to[i] - from[i]
		along += d * (narrowTo[i] - narrowFrom[i])
		length += d * d
		if narrowTo[i] == narrowFrom[i] {
			kept++
		}
	}
	if ratio := along / length; ratio < 0.8 || ratio > 1.2 {
		t.Errorf("BF16 weights moved %.2f of the way of FP32 masters", ratio)
	}
	// else the updates are not small, and the test shows nothing
	if share := float64(kept) / float64(len(from)); share < 0.6 {
		t.Errorf("only %.2f of the weights stayed", share)
	}
}

// Weights of bf16_sr take 2 bytes less each, their optimizer's state is that of FP32 masters, and the plan knows.
func TestWeightsWithoutMastersTakeTwoBytesLess(t *testing.T) {
	p := loadParity(t)
	bytes := func(precision string) (weights, state int) {
		tr, _ := parityTrainer(t, p, 0, precision, 1, 2)
		for _, x := range tr.Tensors() {
			if x.Kind == OfOptimizer {
				state += x.Value.Bytes()
			} else {
				weights += x.Value.Bytes()
			}
		}
		if a := tr.Arenas()[2]; a.Peak() < state || a.Peak() > state+len(tr.updated)*2*tensor.Align {
			t.Errorf("%s: the arena of the optimizer's state holds %d bytes, the state has %d",
				precision, a.Peak(), state)
		}
		return weights, state
	}
	wide, wideState := bytes("bf16")
	narrow, narrowState := bytes("bf16_sr")
	tr, _ := parityTrainer(t, p, 0, "bf16_sr", 1, 2)
	matrices := 0
	for _, x := range tr.Model().Params() {
		if x.Value.Rank() == 2 {
			matrices += x.Value.Len()
		}
	}
	if wide-narrow != 2*matrices || wideState != narrowState {
		t.Errorf("weights %d bytes with masters, %d without, of %d in matrices; state %d and %d",
			wide, narrow, matrices, wideState, narrowState)
	}
}

// Any optimizer updates BF16 weights through FP32, and FP16 gradients without their scale: its losses are those of
// bf16.
func TestEveryOptimizerWorksInNarrowPrecisions(t *testing.T) {
	for _, name := range optimizers(t) {
		tr, src := optimizerTrainer(t, name)
		want := steps(t, tr, src, 40)
		for _, policy := range []string{"bf16_sr", "fp16"} {
			if name == "schedulefree" && policy == "bf16_sr" {
				continue // refused
			}
			tr, src := optimizerTrainer(t, name, "precision="+policy)
			if got := steps(t, tr, src, 40); !(math.Abs(got/want-1) <= 0.03) {
				t.Errorf("%s: after 40 steps of %s the loss is %.4f, with bf16 %.4f", name, policy, got, want)
			}
			if n := filetest.AllocsPerRun(3, func() { tr.update(1e-9, 1) }); n != 0 {
				t.Errorf("%s, %s: %v allocations per update", name, policy, n)
			}
		}
	}
}

// A step that is stopped between two micro-batches leaves the state of the step before, which is then saved. With
// Sophia this state has magnitudes of a pass after the update.
func TestAStoppedStepLeavesNoTrace(t *testing.T) {
	for _, optimizer := range [][]string{{"adamw"}, {"sophia", "optimizer.hessian_every=1"}} {
		tr, src := optimizerTrainer(t, optimizer[0], append(optimizer[1:], "train.micro_batch=2",
			"precision=fp8", "fp8.scaling=delayed", "fp8.history=4")...)
		steps(t, tr, src, 2)
		before := hashes(tr)
		ctx, cancel := context.WithCancel(context.Background())
		at := stoppingAt{src, tr.Position().Sample + 4, cancel}
		if _, err := tr.Step(ctx, at); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: a step of four micro-batches, stopped at the third: %v", optimizer, err)
		}
		if after := hashes(tr); after != before {
			t.Errorf("%s: hashes of weights and scales, and of the optimizer: %v, before the stopped step %v",
				optimizer, after, before)
		}
	}
}

// stoppingAt is a source that stops the run when a sample is read.
type stoppingAt struct {
	dataset.Source
	sample uint64
	stop   func()
}

func (s stoppingAt) Batch(b *dataset.Batch, first uint64, rows int) error {
	if first == s.sample {
		s.stop()
	}
	return s.Source.Batch(b, first, rows)
}
