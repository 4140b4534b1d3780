package train

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/prepare"
	"anneal/tensor"
	"anneal/train/traintest"
)

// Schedule-free AdamW evaluates and saves the average x, and neither changes a bit of the training, on any ranks at any
// stage of ZeRO.
func TestScheduleFreeEvaluatesTheAverage(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "optimizer.name=schedulefree", "train.batch_tokens=512", "model.layers=1")
	c, err := prepare.OpenCorpus(cfg) // which derives the vocabulary
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	type outcome struct {
		e      EvalResult
		hashes [2]string
	}
	train := func(n, stage int, evaluate bool) (o outcome, x *Trainer) {
		cfg.Parallel.Zero = stage
		ranks := onRanks(t, cfg, n, n%2 == 0, func(x *Trainer) error {
			c, err := prepare.OpenCorpus(cfg.Clone())
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.OpenTraining(cfg.Clone()); err != nil {
				return err
			}
			text, err := c.HeldOut(cfg.Model.Context)
			if err != nil {
				return err
			}
			for range 3 {
				if _, err := x.Step(context.Background(), c.Train); err != nil {
					return err
				}
				if !evaluate {
					continue
				}
				e, err := x.Evaluate(context.Background(), text, 500)
				if err != nil {
					return err
				}
				if x.world.Rank() == 0 {
					o.e = e
				}
			}
			return nil
		})
		o.hashes = assembled(t, ranks)
		return o, ranks[0]
	}
	want, alone := train(1, 0, true)
	if silent, _ := train(1, 0, false); silent.hashes != want.hashes {
		t.Errorf("a run that is not evaluated ends with %v, else with %v", silent.hashes, want.hashes)
	}
	for n := 2; n <= 3; n++ {
		for stage := range 4 {
			if got, _ := train(n, stage, true); !reflect.DeepEqual(got, want) {
				t.Errorf("%d ranks at stage %d: %+v, one rank %+v", n, stage, got, want)
			}
		}
	}

	// A model of the saved weights has the losses of the run.
	plain, corpus := testTrainer(t, smallConfig(t, cfg.Data.Path, "train.batch_tokens=512", "model.layers=1"))
	byName := map[string]Tensor{}
	for _, x := range alone.Tensors() {
		byName[x.Name] = x
	}
	for _, p := range plain.Model().Params() {
		x, y := byName[p.Name], byName[p.Name+".y"]
		if x.Kind != OfModel || y.Kind != OfOptimizer || bytes.Equal(x.Value.Raw(), y.Value.Raw()) {
			t.Errorf("%s: is saved as %v and %v, which should differ", p.Name, x.Kind, y.Kind)
		}
		copy(p.Value.Raw(), x.Value.Raw())
	}
	got, err := plain.Evaluate(context.Background(), held(t, plain, corpus), 500)
	if err != nil || got.Loss != want.e.Loss {
		t.Errorf("the saved weights have a loss of %v, %v; the run evaluates %v", got.Loss, err, want.e.Loss)
	}
	for name := range byName {
		if strings.HasSuffix(name, ".x") {
			t.Errorf("%s is saved twice", name)
		}
	}
}

// An update may overwrite the gradient of one rank while others are still to read the sums that it sent them: it waits
// for the slowest.
func TestUpdatesWaitForReadersOfTheSums(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "optimizer.name=schedulefree", "train.batch_tokens=512", "model.layers=1",
		"optimizer.eps=0.01", "train.steps=3", "model.vocab=64", "parallel.zero=0", "parallel.sum_block=2")
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, 5)
	want, _ := trained(t, cfg, src, 1, true)
	group := local.New(2, local.Options{Timeout: time.Minute})
	group[1] = tardy{group[1]}
	ranks := make([]*Trainer, len(group))
	errs := commtest.Each(group, func(c comm.Comm) error {
		dev, err := cpu.New(1)
		if err != nil {
			return err
		}
		t.Cleanup(dev.Close)
		x, err := NewRank(cfg, dev, c)
		if err != nil {
			return err
		}
		t.Cleanup(x.Close)
		ranks[c.Rank()] = x
		for range cfg.Train.Steps {
			if _, err := x.Step(context.Background(), src); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := assembled(t, ranks); got != want {
		t.Errorf("with a rank that reads late: %v; on one rank: %v", got, want)
	}
}

// tardy is a rank that reads what has arrived a little later.
type tardy struct{ comm.Comm }

func (c tardy) Group(ranks []int) (comm.Comm, error) {
	g, err := c.Comm.Group(ranks)
	return tardy{g}, err
}

func (c tardy) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return late{c.Comm.NewExchange(name, out, room)}
}

type late struct{ comm.Transfer }

func (t late) Wait() error {
	err := t.Transfer.Wait()
	time.Sleep(5 * time.Millisecond)
	return err
}
