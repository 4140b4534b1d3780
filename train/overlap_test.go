package train

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/tensor"
	"anneal/train/traintest"
)

// timed is a device on which matrix products take time, and all else takes none.
type timed struct {
	device.Device
	rate    float64 // multiplications and additions a second
	compute func(time.Duration)
}

func (d timed) MatMul(dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions) {
	d.Device.MatMul(dst, a, b, form, opt)
	inner := math.Sqrt(float64(a.Len()) * float64(b.Len()) / float64(dst.Len()))
	d.compute(time.Duration(float64(dst.Len()) * inner / d.rate * float64(time.Second)))
}

// timedStep returns the time of a step on two ranks over a network, the mean of the steps after the first: by the clock
// of the network, or in real time.
func timedStep(t *testing.T, cfg *config.Config, network commtest.Network, rate float64, real bool) time.Duration {
	t.Helper()
	group := local.New(2, local.Options{Timeout: time.Minute})
	begun := time.Now()
	now := func(comm.Comm) time.Duration { return time.Since(begun) }
	compute := func(comm.Comm) func(time.Duration) { return time.Sleep }
	if real {
		group = network.Delay(group)
	} else {
		for r, c := range network.Clocks(group) {
			group[r] = c
		}
		now = func(c comm.Comm) time.Duration { return c.(*commtest.Clock).Now() }
		compute = func(c comm.Comm) func(time.Duration) { return c.(*commtest.Clock).Compute }
	}
	var took [2]time.Duration
	errs := commtest.Each(group, func(c comm.Comm) error {
		dev, err := cpu.New(1)
		if err != nil {
			return err
		}
		defer dev.Close()
		x, err := NewRank(cfg, timed{dev, rate, compute(c)}, c)
		if err != nil {
			return err
		}
		defer x.Close()
		src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, 5)
		begin := time.Duration(0)
		for step := range cfg.Train.Steps {
			if step == 1 {
				begin = now(c)
			}
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
		}
		took[c.Rank()] = now(c) - begin
		_, err = c.Share(nil) // the other may still read what this rank frees
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return max(took[0], took[1]) / time.Duration(cfg.Train.Steps-1)
}

// At every stage, most of the exchange happens while ranks compute. With transfers that nothing overlaps, the bound
// does not hold.
func TestExchangeOverlapsWithComputing(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "precision=bf16", "model.layers=8", "model.dim=64",
		"train.batch_tokens=512")
	cfg.Model.Vocab = 300
	fast := commtest.Network{BytesPerSecond: math.Inf(1)}
	slow := commtest.Network{Latency: 100 * time.Microsecond, BytesPerSecond: 5e6}
	blocking := slow
	blocking.Blocking = true
	const rate = 300e6
	for stage := range 4 {
		cfg.Parallel.Zero = stage
		compute, exchange := timedStep(t, cfg, fast, rate, false), timedStep(t, cfg, slow, math.Inf(1), false)
		step, without := timedStep(t, cfg, slow, rate, false), timedStep(t, cfg, blocking, rate, false)
		t.Logf("stage %d: compute %v, exchange %v: step %v, without overlap %v",
			stage, compute, exchange, step, without)
		if limit := compute + exchange*6/10; step > limit {
			t.Errorf("stage %d: a step takes %v, more than %v of computing and 0.6 of %v of exchange",
				stage, step, compute, exchange)
		} else if without <= limit {
			t.Errorf("stage %d: without overlap a step takes %v: the bound of %v shows nothing", stage, without, limit)
		}
	}
}

// The same in real time, over a network of 5 ms.
func TestExchangeOverlapsInRealTime(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "precision=bf16", "model.layers=4", "model.dim=64",
		"train.batch_tokens=256",
		"train.steps=3", "parallel.zero=2")
	cfg.Model.Vocab = 300
	fast := commtest.Network{BytesPerSecond: math.Inf(1)}
	slow := commtest.Network{Latency: 5 * time.Millisecond, BytesPerSecond: 5e6}
	const rate = 300e6
	for try := range 5 { // a busy machine may be late
		compute, exchange := timedStep(t, cfg, fast, rate, true), timedStep(t, cfg, slow, math.Inf(1), true)
		step := timedStep(t, cfg, slow, rate, true)
		t.Logf("compute %v, exchange %v: step %v", compute, exchange, step)
		if step <= compute+exchange*6/10 {
			return
		}
		if try == 4 {
			t.Errorf("a step takes %v, more than %v of computing and 0.6 of %v of exchange", step, compute, exchange)
		}
	}
}
