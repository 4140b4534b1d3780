package train

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/nn"
	"anneal/tensor"
	"anneal/train/traintest"
)

// groupConfig is a configuration of two groups, of four micro-batches a step.
func groupConfig(t *testing.T, overrides ...string) (*config.Config, dataset.Source) {
	cfg := smallConfig(t, traintest.Data(t), append([]string{
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
		for begin := steadyUntilUpdate(t, x); x.Position().Step < cfg.Train.Steps; {
			begin()
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

// Where groups meet, frozen weights keep their bits, and the average is of the weights that all continue from.
func TestGroupsMeetAtTheirWeights(t *testing.T) {
	cfg, src := groupConfig(t, "train.batch_tokens=768", "parallel.outer.groups=3", "parallel.outer.every=1",
		"optimizer.groups.embedding.lr_ratio=0", "average.ema=1e-9", "precision=fp32") // it is the last weights
	onRanks(t, cfg, 3, true, func(x *Trainer) error {
		embed := slices.Clone(x.model.Params()[0].Value.F32())
		for range cfg.Train.Steps {
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
		}
		if !slices.Equal(x.model.Params()[0].Value.F32(), embed) {
			t.Error("frozen embeddings changed")
		}
		off := 0.0
		for i, p := range x.params {
			for j := range p.Value.Len() {
				off = max(off, math.Abs(p.Value.Float64(j)-x.average.values[i].Float64(j)))
			}
		}
		if off > 1e-7 {
			t.Errorf("the average is up to %v from the weights", off)
		}
		return nil
	})
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
			err := x.SetWeights(func(_ *nn.Param, host *tensor.Tensor) {
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

// kept is a rank of a group which fails if what a rank sends changes before others have it. They have what they
// released before the last message, or before Sent.
type kept struct {
	comm.Comm
	released *[][]atomic.Int64 // by transfer and rank: how often
	mine     *[]*keptTransfer
}

// keptRanks makes the ranks of a group such.
func keptRanks(group []comm.Comm, transfers int) []comm.Comm {
	released := make([][]atomic.Int64, transfers)
	for i := range released {
		released[i] = make([]atomic.Int64, len(group))
	}
	for r, c := range group {
		group[r] = kept{c, &released, new([]*keptTransfer)}
	}
	return group
}

func (k kept) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	t := &keptTransfer{
		Transfer: k.Comm.NewExchange(name, out, room), of: k, name: name, out: out,
		released: (*k.released)[len(*k.mine)],
	}
	*k.mine = append(*k.mine, t)
	return t
}

func (k kept) Share(message []byte) ([][]byte, error) {
	all, err := k.Comm.Share(message)
	for _, t := range *k.mine {
		if err == nil && t.before != "" && t.arrived() {
			err = t.check()
		}
	}
	return all, err
}

type keptTransfer struct {
	comm.Transfer
	of       kept
	name     string
	out      [][]tensor.Tensor
	released []atomic.Int64
	starts   int64
	before   string // what is on its way
}

func (t *keptTransfer) Start(senders int) {
	t.Transfer.Start(senders)
	if t.starts++; t.of.Rank() < senders {
		t.before = t.contents()
	}
}

func (t *keptTransfer) Release() {
	t.released[t.of.Rank()].Store(t.starts)
	t.Transfer.Release()
}

func (t *keptTransfer) Sent() error { return errors.Join(t.check(), t.Transfer.Sent()) }

// arrived reports whether all receivers have released what was sent last.
func (t *keptTransfer) arrived() bool {
	for r := range t.released {
		if r != t.of.Rank() && len(t.out[r]) > 0 && t.released[r].Load() < t.starts {
			return false
		}
	}
	return true
}

func (t *keptTransfer) check() error {
	before := t.before
	if t.before = ""; before != "" && before != t.contents() {
		return fmt.Errorf("rank %d has changed %s on their way", t.of.Rank(), t.name)
	}
	return nil
}

func (t *keptTransfer) contents() string {
	h := sha256.New()
	for r, list := range t.out {
		for i := range list {
			if r != t.of.Rank() {
				h.Write(list[i].Raw())
			}
		}
	}
	return string(h.Sum(nil))
}

// Neither a meeting nor a state that is loaded changes weights that others still copy.
func TestWeightsOnTheirWayDoNotChange(t *testing.T) {
	for _, precision := range []string{"fp32", "bf16"} {
		for stage := range 4 {
			cfg, src := groupConfig(t, "precision="+precision)
			cfg.Parallel.Zero = stage
			group := keptRanks(local.New(4, local.Options{Timeout: time.Minute}), 99)
			errs := commtest.Each(group, func(c comm.Comm) error {
				dev, err := cpu.New(1)
				if err != nil {
					return err
				}
				defer dev.Close()
				x, err := NewRank(cfg, dev, c)
				if err != nil {
					return err
				}
				for _, saved := range x.Tensors() {
					saved.Value.Raw()[0] ^= 1
				}
				if err := x.Restore(x.State()); err != nil {
					return err
				}
				for range cfg.Train.Steps {
					if _, err := x.Step(context.Background(), src); err != nil {
						return err
					}
					if err := x.Meet(); err != nil {
						return err
					}
				}
				return x.shard.Settle()
			})
			if err := errors.Join(errs...); err != nil {
				t.Errorf("%s, stage %d: %v", precision, stage, err)
			}
		}
	}
}

// Groups meet where a run ends between two meetings: all then have the same weights.
func TestGroupsMeetWhereARunEnds(t *testing.T) {
	cfg, src := groupConfig(t)
	weights := make([]string, 2)
	onRanks(t, cfg, 2, true, func(x *Trainer) error {
		if _, err := x.Step(context.Background(), src); err != nil {
			return err
		}
		err := x.Meet()
		for _, p := range x.model.Params() {
			weights[x.outer.world.Rank()] += fmt.Sprint(p.Value.Raw())
		}
		return err
	})
	if weights[0] != weights[1] {
		t.Error("the groups end with different weights")
	}
}
