package train

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/checkpoint"
	"anneal/comm"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/internal/torture"
	"anneal/prepare"
	"anneal/tensor"
	"anneal/train/traintest"
)

// onRanks runs f for the trainers of n ranks, each on a device of its own with one thread, and returns them. Without
// inPlace, what they exchange is copied, as between processes.
func onRanks(t *testing.T, cfg *config.Config, n int, inPlace bool, f func(x *Trainer) error) []*Trainer {
	t.Helper()
	worlds := local.New(n, local.Options{Timeout: time.Minute})
	trainers, errs := make([]*Trainer, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			world := worlds[r]
			if !inPlace && n > 1 {
				world = copying{world}
			}
			if errs[r] = func() error {
				dev, err := cpu.New(1)
				if err != nil {
					return err
				}
				t.Cleanup(dev.Close)
				x, err := NewRank(cfg, dev, world)
				if err != nil {
					return err
				}
				t.Cleanup(x.Close)
				trainers[r] = x
				if err := f(x); err != nil {
					return err
				}
				return x.Settle() // before any rank frees its memory
			}(); errs[r] != nil {
				worlds[r].Abort(errs[r])
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d of %d: %v", r, n, err)
		}
	}
	return trainers
}

// copying is a group of one process whose ranks copy what they receive, from Start on, as MPI does.
type copying struct{ comm.Comm }

func (copying) InPlace() bool { return false }

func (c copying) Group(ranks []int) (comm.Comm, error) {
	g, err := c.Comm.Group(ranks)
	return copying{g}, err
}

func (c copying) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return &copied{c.Comm.NewExchange(name, out, nil), c.Rank(), out[c.Rank()], room, make(chan error, 1)}
}

type copied struct {
	comm.Transfer
	me   int
	mine []tensor.Tensor
	room [][]tensor.Tensor
	done chan error
}

func (c *copied) Set(out, room [][]tensor.Tensor) {
	c.Transfer.Set(out, nil)
	c.mine, c.room = append(c.mine[:0], out[c.me]...), room
}

func (c *copied) Start(senders int) {
	c.Transfer.Start(senders)
	room := c.room
	go func() { c.done <- c.receive(senders, room) }()
}

func (c *copied) receive(senders int, room [][]tensor.Tensor) error {
	if err := c.Transfer.Wait(); err != nil {
		return err
	}
	for r := range senders {
		if r == c.me {
			continue
		}
		for k, x := range c.Transfer.From(r) {
			copy(room[r][k].Raw(), x.Raw())
		}
	}
	c.Transfer.Release()
	return nil
}

func (c *copied) Wait() error { return <-c.done }

func (c *copied) From(r int) []tensor.Tensor {
	if r == c.me {
		return c.mine
	}
	return c.room[r]
}

func (c *copied) Release() {}

// trained runs all steps of cfg on n ranks and returns the hashes at the end and what the ranks reported.
func trained(t *testing.T, cfg *config.Config, src dataset.Source, n int, inPlace bool) (hashes [2]string, log string) {
	t.Helper()
	logs := make([]string, n)
	ranks := onRanks(t, cfg, n, inPlace, func(x *Trainer) error {
		for begin := steadyUntilUpdate(t, x); x.Position().Step < cfg.Train.Steps; {
			begin()
			e, err := x.Step(context.Background(), src)
			if err != nil {
				return err
			}
			e.UpdateRatios = LayerFigures{} // which ranks that share a model do not measure
			logs[x.world.Rank()] += fmt.Sprintln(e)
		}
		return nil
	})
	for r, log := range logs {
		if a, b := firstDifference(log, logs[0]); a != b {
			t.Errorf("rank %d of %d, stage %d, reports\n%s\nrank 0\n%s", r, n, cfg.Parallel.Zero, a, b)
		}
	}
	return assembled(t, ranks), logs[0]
}

// steadyUntilUpdate fails the test if a step changes what checkpoints hold before its update: they are copied while the
// step computes. The function that it returns is called before each step.
func steadyUntilUpdate(t *testing.T, x *Trainer) (begin func()) {
	owned := x.Owned()
	sums := func() (list []uint32) {
		for i := range owned {
			if !owned[i].Volatile {
				list = append(list, crc32.ChecksumIEEE(bytesOf(&owned[i])))
			}
		}
		return list
	}
	var before []uint32
	x.OnPhase = func(p Phase) {
		if p == Updating && !slices.Equal(sums(), before) {
			t.Errorf("step %d changes weights or state before its update", x.Position().Step+1)
		}
	}
	return func() { before = sums() }
}

// assembled hashes weights and state from what every rank owns, and fails unless that is every element once.
func assembled(t *testing.T, ranks []*Trainer) [2]string {
	t.Helper()
	whole, seen := map[string]*checkpoint.Tensor{}, map[string][]bool{}
	var order []string
	for _, x := range ranks {
		for _, p := range x.Owned() {
			size := p.Value.DType().Size()
			n := 1
			for _, d := range p.Shape {
				n *= d
			}
			w := whole[p.Name]
			if w == nil {
				w = &checkpoint.Tensor{
					Name: p.Name, DType: strings.ToUpper(p.Value.DType().String()), Shape: slices.Clone(p.Shape),
					Data: make([]byte, n*size), Optim: p.Kind == OfOptimizer, Average: p.Kind == OfAverage,
				}
				whole[p.Name], seen[p.Name] = w, make([]bool, n)
				order = append(order, p.Name)
			}
			raw := bytesOf(&p)
			p.Runs(func(local, global, n int) {
				copy(w.Data[global*size:(global+n)*size], raw[local*size:])
				for i := global; i < global+n; i++ {
					if seen[p.Name][i] {
						t.Fatalf("element %d of %s has two owners", i, p.Name)
					}
					seen[p.Name][i] = true
				}
			})
		}
	}
	var list []checkpoint.Tensor
	for _, name := range order {
		if i := slices.Index(seen[name], false); i >= 0 {
			t.Fatalf("element %d of %s has no owner", i, name)
		}
		list = append(list, *whole[name])
	}
	w, o, _ := checkpoint.HashTensors(list)
	return [2]string{w, o}
}

// firstDifference returns the first lines in which two logs differ; "" if they are the same.
func firstDifference(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			return x[i], y[min(i, len(y)-1)]
		}
	}
	return "", ""
}

// sameOnRanks fails unless cfg, case i of several, gives the same bits and reports on one rank, and on several at a
// stage of ZeRO: at every stage with -long.
func sameOnRanks(t *testing.T, i int, cfg *config.Config, src dataset.Source) {
	t.Helper()
	want, log := trained(t, cfg, src, 1, true)
	for n := 2; n <= 4; n++ {
		for stage := range 4 {
			if !torture.Sample(i+n+stage, 4) {
				continue
			}
			cfg.Parallel.Zero = stage
			got, told := trained(t, cfg, src, n, (n+stage)%2 == 0)
			if got != want {
				t.Errorf("%d ranks at stage %d end with %.8s, one with %.8s", n, stage, got, want)
			}
			if a, b := firstDifference(told, log); a != b {
				t.Errorf("%d ranks at stage %d report\n%s\none reports\n%s", n, stage, a, b)
			}
		}
	}
}

// A run ends with the same bits of weights and state, and reports the same numbers at every step, on any number of
// ranks at any stage of ZeRO.
func TestAnyRanksGiveTheSameBits(t *testing.T) {
	data := traintest.Data(t)
	for i, overrides := range [][]string{
		{"precision=bf16"},
		{"precision=fp32", "model.tie_embeddings=false", "optimizer.name=muon"},
		{"precision=fp16", "model.family=gpt2", "train.z_loss=1e-3", "loss_scale.init=1099511627776"},
		{"guard.spike_z=0.01", "guard.window=4", "guard.max_skips=9", "optimizer.lr=0.1", "train.steps=8"},
		{"precision=tf32", "optimizer.name=muon", "optimizer.normuon=true", "average.ema=0.9"},
		{"precision=fp64", "optimizer.name=lion", "train.batch_tokens=128"},
		{"precision=fp8", "fp8.scaling=delayed", "train.noise_scale_every=2"},
		{"model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=16"},
		{"model.family=gemma3", "model.attention=window:8,full", "optimizer.name=adafactor"},
		{"model.family=anneal", "model.dropout=0.1", "model.stochastic_depth=0.5", "guard.replay_every=2"},
		{"precision=bf16_sr", "memory.recompute=every:1", "optimizer.name=adam8bit", "model.layers=3"},
		{"precision=bf16_sr", "average.ema=0.9", "optimizer.name=adafactor", "optimizer.variant=palm"},
		{"parallel.wire=bf16", "train.noise_scale_every=1"},
		{"parallel.sum_block=2", "train.noise_scale_every=1", "guard.replay_every=2", "model.stochastic_depth=0.5"},
		{"parallel.sum_block=3", "parallel.wire=int8", "precision=fp16", "model.tie_embeddings=false"},
		{"parallel.sum_block=2", "parallel.wire=bf16", "train.micro_batch=2", "optimizer.name=muon"},
		{"parallel.wire=bf16", "precision=fp64", "optimizer.name=lion", "train.batch_tokens=128"},
		{"parallel.wire=int8", "model.stochastic_depth=0.5", "optimizer.name=adafactor"},
		{"parallel.wire=int8", "optimizer.name=muon", "model.dim=24", "model.layers=5", "precision=fp16"},
		{"train.batch_ramp=256 over 1100 tokens", "model.attention=linear:gated,window:8", "model.qk_norm=true"},
		{"optimizer.name=sophia", "optimizer.hessian_every=2", "train.noise_scale_every=1", "train.z_loss=1e-3"},
		{"optimizer.name=soap", "optimizer.basis_every=2", "model.tie_embeddings=false"},
		{"optimizer.moments=bf16", "model.tie_embeddings=false"},
		{"optimizer.name=adam", "optimizer.moments=bf16", "precision=bf16_sr"},
		{"optimizer.name=schedulefree", "schedule.name=constant"},
		{"optimizer.name=ademamix", "train.length_warmup=8 over 600 tokens"},
		{"precision=fp8", "fp8.scaling=block"},
		{"memory.offload=optimizer", "model.tie_embeddings=false"},
		{"memory.offload=checkpoints", "memory.recompute=every:1", "model.layers=3"},
		{"memory.offload=optimizer", "optimizer.name=muon", "optimizer.normuon=true", "precision=bf16_sr"},
		{"optimizer.name=sgd", "model.mup=true", "train.clip=0.1", "train.batch_tokens=384"},
	} {
		t.Run(strings.Join(overrides, " "), func(t *testing.T) {
			cfg := smallConfig(t, data, append([]string{"train.batch_tokens=640"}, overrides...)...)
			cfg.Model.Vocab = 300
			sameOnRanks(t, i, cfg, dataset.NewRandom(300, cfg.Model.Context, 5))
		})
	}
}

// The ranks of a run on a mix of sources weigh its domains, count losses by source and evaluate weights and their
// average alike.
func TestRanksWeighAndEvaluateAlike(t *testing.T) {
	cfg := traintest.DomainConfig(traintest.Domains(t), 3)
	cfg.Average.EMA = 0.8
	reference, _ := testTrainer(t, cfg)
	reports := func(n, stage int) (logs []string) {
		cfg.Parallel.Zero = stage
		logs = make([]string, n)
		onRanks(t, cfg, n, n%2 == 0, func(x *Trainer) error {
			log := &logs[x.world.Rank()]
			cfg := cfg.Clone()
			c, err := prepare.OpenCorpus(cfg)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := errors.Join(c.OpenTraining(cfg), c.TakeTurns(cfg.Train.MicroBatch)); err != nil {
				return err
			}
			if err := x.WeighDomains(GroupDRO{Rate: 1, Smoothing: 1e-3}, reference.Model(), 3); err != nil {
				return err
			}
			text, err := c.HeldOut(cfg.Model.Context)
			if err != nil {
				return err
			}
			for range cfg.Train.Steps {
				e, err := x.Step(context.Background(), c.Train)
				if err != nil {
					return err
				}
				*log += fmt.Sprintln(e, x.sources)
				now, err := x.Evaluate(context.Background(), text, 1500)
				if err != nil {
					return err
				}
				*log += fmt.Sprintln(now)
				average, err := x.EvaluateAverage(context.Background(), text, 0)
				if err != nil {
					return err
				}
				*log += fmt.Sprintln(average)
			}
			return nil
		})
		return logs
	}
	want := reports(1, 0)[0]
	for n := 2; n <= 4; n++ {
		for stage := range 4 {
			for r, log := range reports(n, stage) {
				if a, b := firstDifference(log, want); a != b {
					t.Fatalf("rank %d of %d at stage %d reports\n%s\none rank\n%s", r, n, stage, a, b)
				}
			}
		}
	}
}

// What a rank asks for once is heard by all in the step, also if the step has a second pass, and only in it.
func TestWhatARankAsksForIsHeard(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.batch_tokens=512", "optimizer.name=sophia",
		"optimizer.hessian_every=1")
	cfg.Model.Vocab = 300
	src := dataset.NewRandom(300, cfg.Model.Context, 5)
	onRanks(t, cfg, 2, true, func(x *Trainer) error {
		asked := false
		x.Ask = func() uint64 {
			if asked || x.world.Rank() == 0 {
				return 0
			}
			asked = true
			return 4
		}
		for _, want := range []uint64{4, 0} {
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
			if x.Heard != want {
				t.Errorf("rank %d hears %d, want %d", x.world.Rank(), x.Heard, want)
			}
		}
		return nil
	})
}

// Ranks that own nothing of a small model take part when its average is evaluated.
func TestAverageWithIdleOwners(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "average.ema=0.5", "train.steps=1", "model.layers=1")
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, 5)
	results := func(n int) []EvalResult {
		list, idle := make([]EvalResult, n), make([]bool, n)
		onRanks(t, cfg, n, true, func(x *Trainer) error {
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
			text, err := c.HeldOut(cfg.Model.Context)
			if err != nil {
				return err
			}
			idle[x.world.Rank()] = len(x.updated) == 0
			list[x.world.Rank()], err = x.EvaluateAverage(context.Background(), text, 500)
			return err
		})
		if n > 1 && !slices.Contains(idle, true) {
			t.Errorf("all of %d ranks own a part", n)
		}
		return list
	}
	want := results(1)[0]
	for cfg.Parallel.Zero = 1; cfg.Parallel.Zero <= 3; cfg.Parallel.Zero++ {
		for r, got := range results(12) {
			if got.Loss != want.Loss {
				t.Errorf("stage %d, rank %d: %v, one rank: %v", cfg.Parallel.Zero, r, got.Loss, want.Loss)
			}
		}
	}
}
