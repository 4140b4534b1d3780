package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/device"
	"anneal/tensor"
	"anneal/train"
	"anneal/train/traintest"
)

// flips flips a bit of the gradient of the logits, or of a loss, in one of its calls.
type flips struct {
	device.Device
	calls, at int
	loss      bool
}

func (d *flips) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	d.Device.CrossEntropy(loss, dlogits, logits, targets, o)
	if d.calls++; d.calls != d.at {
		return
	}
	x := dlogits
	if d.loss {
		x = loss
	}
	x.Raw()[len(x.Raw())/2] ^= 1 << 6
}

// replayed runs four steps of two micro-batches, replaying every second step, on a device.
func replayed(t *testing.T, dev func(device.Device) device.Device) (*session, error) {
	t.Helper()
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Train.EvalTokens, cfg.Train.MicroBatch, cfg.Schedule.Warmup = 4, 0, 64, 4,
		1
	cfg.Guard.ReplayEvery = 2
	before := train.Devices["cpu"]
	train.Devices["cpu"] = func(threads, place int) (device.Device, error) {
		d, err := before(threads, place)
		if err != nil {
			return nil, err
		}
		return dev(d), nil
	}
	defer func() { train.Devices["cpu"] = before }()
	s, err := newSession(cfg, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if err := s.create(false); err != nil {
		t.Fatal(err)
	}
	_, err = s.run(context.Background())
	return s, err
}

// A replay changes no bit. A bit that flips in either run of a replayed micro-batch stops the run before its step is
// saved, and names the step and what differs.
func TestReplaysFindFlippedBits(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Train.EvalTokens, cfg.Train.MicroBatch, cfg.Schedule.Warmup = 4, 0, 64, 4,
		1
	want := mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	counter := &flips{}
	s, err := replayed(t, func(d device.Device) device.Device { counter.Device = d; return counter })
	if err != nil {
		t.Fatal(err)
	}
	if got := hashes(s.trainer); got != [2]string{want.WeightsHash, want.OptimizerHash} {
		t.Errorf("with replays the run ends with %.12s, want %.12s", got[0], want.WeightsHash)
	}
	if counter.calls < 10 { // 4 steps of 2 micro-batches, and 2 replays
		t.Fatalf("the loss was computed %d times", counter.calls)
	}
	for _, c := range []struct {
		call int // 1, 2; 3, 4 is the replayed one, 5; 6, 7; 8, 9, 10
		loss bool
		step int // 0 if it cannot be found
	}{{1, false, 0}, {3, false, 2}, {4, false, 2}, {4, true, 2}, {9, false, 4}, {5, false, 0}} {
		s, err := replayed(t, func(d device.Device) device.Device { return &flips{d, 0, c.call, c.loss} })
		found := (*train.CorruptionError)(nil)
		if c.step == 0 {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if !errors.As(err, &found) || found.Step != c.step || found.Dir != s.Dir ||
			(found.Tensor == "the losses") != c.loss || !strings.Contains(err.Error(), "anneal resume "+s.Dir) {
			t.Errorf("%+v: %v", c, err)
		}
		if list, err := checkpoint.List(s.dir.checkpoints()); err != nil || len(list) != 0 {
			t.Errorf("%+v: the run saved %+v, %v", c, list, err)
		}
	}
}
