package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/nn"
	"anneal/tensor"
)

// groupConfig is a configuration of two groups, of four micro-batches a step.
func groupConfig(t *testing.T, overrides ...string) (*config.Config, dataset.Source) {
	cfg := smallConfig(t, testData(t), append([]string{
		"train.batch_tokens=512", "parallel.outer.groups=2", "parallel.outer.every=3", "train.steps=7",
	}, overrides...)...)
	cfg.Model.Vocab = 300
	return cfg, dataset.NewRandom(300, cfg.Model.Context, 5)
}

// Groups end with the same bits and report the same numbers whatever the number of their ranks and the stage of ZeRO,
// also if one of them skips steps that the other takes.
func TestRanksOfAGroupGiveItsBits(t *testing.T) {
	for _, overrides := range [][]string{
		{"precision=bf16"},
		{"precision=fp32", "optimizer.name=muon", "average.ema=0.9"},
		{"precision=bf16_sr", "optimizer.name=adam8bit", "train.noise_scale_every=2"},
		{"precision=fp16", "loss_scale.init=1099511627776"},
		{"precision=fp8", "fp8.scaling=delayed", "parallel.wire=int8"},
		{"parallel.sum_block=2", "parallel.wire=bf16", "model.dropout=0.1", "model.family=anneal"},
		{"guard.spike_z=0.01", "guard.window=4", "guard.max_skips=9", "optimizer.lr=0.1", "guard.replay_every=2"},
		{"train.batch_ramp=256 over 1500", "parallel.outer.every=2"},
	} {
		t.Run(strings.Join(overrides, " "), func(t *testing.T) {
			cfg, src := groupConfig(t, overrides...)
			want, log := trainedGroups(t, cfg, src, 2, true)
			for _, n := range []int{4, 6} {
				for stage := range 4 {
					cfg.Parallel.Zero = stage
					got, told := trainedGroups(t, cfg, src, n, (n/2+stage)%2 == 0)
					if got != want {
						t.Errorf("%d ranks at stage %d end with %.8s, two with %.8s", n, stage, got, want)
					}
					if a, b := firstDifference(told, log); a != b {
						t.Errorf("%d ranks at stage %d report\n%s\ntwo report\n%s", n, stage, a, b)
					}
				}
			}
		})
	}
}

// trainedGroups is trained, but the ranks of different groups report different numbers.
func trainedGroups(t *testing.T, cfg *config.Config, src dataset.Source, n int, inPlace bool) ([2]string, string) {
	t.Helper()
	logs := make([]string, n)
	ranks := onRanks(t, cfg, n, inPlace, func(x *Trainer) error {
		for range cfg.Train.Steps {
			e, err := x.Step(context.Background(), src)
			if err != nil {
				return err
			}
			logs[x.outer.world.Rank()] += fmt.Sprintln(e)
		}
		return nil
	})
	return assembled(t, ranks), logs[0] + logs[1]
}

// Between two meetings groups differ; where they meet, and at the last step, all have the same weights.
func TestGroupsMeetWhenItIsTime(t *testing.T) {
	cfg, src := groupConfig(t)
	hashOf := func(x *Trainer) string {
		var list []string
		for _, p := range x.model.Params() {
			list = append(list, fmt.Sprint(p.Value.Raw()))
		}
		return strings.Join(list, "")
	}
	history := make([][]string, 2)
	onRanks(t, cfg, 2, true, func(x *Trainer) error {
		for range cfg.Train.Steps {
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
			history[x.outer.world.Rank()] = append(history[x.outer.world.Rank()], hashOf(x))
		}
		return nil
	})
	for i := range cfg.Train.Steps {
		step := i + 1
		met := step%3 == 0 || step == cfg.Train.Steps
		if same := history[0][i] == history[1][i]; same != met {
			t.Errorf("after step %d the groups have the same weights: %v", step, same)
		}
	}
}

// Groups that meet after every step of plain SGD and take the mean of their weights do what data parallelism does.
func TestMeetingAfterEveryStepOfSGDIsDataParallelism(t *testing.T) {
	weights := func(groups int) (list []float64) {
		cfg, src := groupConfig(t, "precision=fp64", "optimizer.name=sgd", "optimizer.momentum=0", "train.clip=0",
			"optimizer.lr=0.5", "parallel.outer.every=1", "parallel.outer.lr=1", "parallel.outer.momentum=0")
		cfg.Parallel.Outer.Groups = groups
		ranks := onRanks(t, cfg, 2, true, func(x *Trainer) error {
			for range cfg.Train.Steps {
				if _, err := x.Step(context.Background(), src); err != nil {
					return err
				}
			}
			return nil
		})
		for _, p := range ranks[0].model.Params() {
			for i := range p.Value.Len() {
				list = append(list, p.Value.Float64(i))
			}
		}
		return list
	}
	plain, met := weights(1), weights(2)
	for i, w := range plain {
		if math.Abs(w-met[i]) > 1e-12 {
			t.Fatalf("weight %d is %.17g, with data parallelism %.17g", i, met[i], w)
		}
	}
}

// The outer step is Nesterov's, by hand.
func TestTheOuterStepIsNesterovs(t *testing.T) {
	cfg, _ := groupConfig(t, "precision=fp64")
	onRanks(t, cfg, 2, false, func(x *Trainer) error {
		o := x.outer
		o.LR, o.Momentum = 0.7, 0.9
		p := o.params[0]
		s, m := 2.0, 0.0
		set := func(v *tensor.Tensor, to float64) { v.SetFloat64(0, to) }
		set(&o.starts[0], s)
		for i := range 3 {
			w := [2]float64{1.5 + float64(i), 1.0 - float64(i)}
			set(&p.Value, w[o.group()])
			if err := o.meet(x.dev); err != nil {
				return err
			}
			delta := s - (w[0]+w[1])/2
			m = 0.9*m + delta
			s -= 0.7 * (delta + 0.9*m)
			if got := p.Value.Float64(0); math.Abs(got-s) > 1e-14 {
				t.Errorf("meeting %d gives %.17g instead of %.17g", i+1, got, s)
			}
		}
		return nil
	})
}

// What groups cannot do is refused before a run takes memory.
func TestGroupsThatCannotBeAreRefused(t *testing.T) {
	for _, overrides := range [][]string{{}, {"optimizer.name=sophia"}} {
		cfg, _ := groupConfig(t, overrides...)
		var p config.Problem
		if _, err := MeasureRun(cfg, device.Null{}); !errors.As(err, &p) || p.Key != "parallel.outer.groups" {
			t.Errorf("%v: the error is %v", overrides, err)
		}
	}
}

// counting counts the bytes that a rank sends in transfers.
type counting struct {
	comm.Comm
	sent *int
}

func (c counting) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	each := 0
	for r, list := range out {
		for i := range list {
			if r != c.Rank() {
				each += list[i].Bytes()
			}
		}
	}
	return counted{c.Comm.NewExchange(name, out, room), c, each}
}

type counted struct {
	comm.Transfer
	of   counting
	each int
}

func (c counted) Start(senders int) {
	if c.of.Rank() < senders {
		*c.of.sent += c.each
	}
	c.Transfer.Start(senders)
}

// Groups of one rank send nothing but their weights, where they meet.
func TestGroupsSendOnlyWhereTheyMeet(t *testing.T) {
	cfg, src := groupConfig(t) // meets after steps 3, 6 and 7
	for r, world := range local.New(2, local.Options{Timeout: time.Minute}) {
		t.Run(fmt.Sprint("rank ", r), func(t *testing.T) {
			t.Parallel()
			sent := 0
			dev, err := cpu.New(1)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			x, err := NewRank(cfg, dev, counting{world, &sent})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			for range cfg.Train.Steps {
				if _, err := x.Step(context.Background(), src); err != nil {
					t.Fatal(err)
				}
			}
			if want := 3 * 4 * int(x.model.Count()); sent != want {
				t.Errorf("rank %d sends %d bytes, want %d", r, sent, want)
			}
		})
	}
}

// A group whose steps are skipped does not stop the others from theirs, and they keep in step. It has diverged for all
// when it has skipped as many as the guard allows.
func TestAGroupThatSkipsIsHeardByAll(t *testing.T) {
	for stage := range 4 {
		cfg, src := groupConfig(t, "parallel.outer.every=9", "guard.max_skips=3")
		cfg.Parallel.Zero = stage
		onRanks(t, cfg, 4, stage%2 == 0, func(x *Trainer) error {
			weight := [2]float64{0.02, math.NaN()}[x.outer.group()]
			err := x.SetWeights(func(_ int, _ *nn.Param, host *tensor.Tensor) {
				for i := range host.Len() {
					host.SetFloat64(i, weight)
				}
			})
			for step := 1; step <= 3 && err == nil; step++ {
				var e Event
				e, err = x.Step(context.Background(), src)
				if math.IsNaN(e.Loss) || e.Targets != 512 || e.Skipped != (x.outer.group() == 1) {
					t.Errorf("stage %d, group %d, step %d: %+v", stage, x.outer.group(), step, e)
				}
				if g := x.Guard(); g.Row != step || g.Exhausted() != (step == 3) {
					t.Errorf("stage %d, group %d hears of %d skips after %d", stage, x.outer.group(), g.Row, step)
				}
			}
			return err
		})
	}
}
