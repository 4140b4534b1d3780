package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"anneal/comm"
	"anneal/comm/absent"
	"anneal/comm/local"
	"anneal/config"
	"anneal/device/cpu"
	"anneal/internal/torture"
	"anneal/parallel"
	"anneal/prepare"
	"anneal/train"
	"anneal/train/traintest"
)

// Every rank of any mesh that trains takes, in each of its arenas, the very bytes that were planned for it.
func TestTortureMeshesTakeWhatIsPlanned(t *testing.T) {
	data := traintest.Data(t)
	torture.Run(t, 8, func(r *rand.Rand) (fault, outcome string) {
		precision := []string{"bf16", "fp32", "fp16", "bf16_sr", "fp8", "fp64"}[r.IntN(6)]
		wire := []string{"f32", "f32", "bf16", "int8"}[r.IntN(4)]
		keys := append(append(anyRecipe(r), anyMesh(r)...), "precision="+precision, "parallel.wire="+wire)
		if precision == "fp16" {
			keys = append(keys, "loss_scale.init=1") // no step is skipped
		}
		cfg, err := recipeConfig(t, data, keys)
		if err != nil {
			return "a mesh that cannot run its recipe", "refused"
		}
		differences, err := planAndTrain(t, cfg)
		if refused := (config.Problem{}); errors.As(err, &refused) {
			return "a mesh that cannot run its recipe", "refused"
		}
		if err != nil || len(differences) > 0 {
			t.Fatalf("%v\n%s\n%s", err, strings.Join(differences, "\n"), strings.Join(keys, " "))
		}
		return "a mesh that can run its recipe", "the bytes planned"
	})
}

// planAndTrain trains for two steps and an evaluation, and lists the arenas of all ranks whose peak was not planned.
func planAndTrain(t *testing.T, cfg *config.Config) ([]string, error) {
	n := cfg.Parallel.Ranks
	lists, errs, trainers := make([][]string, n), make([]error, n), make([]*train.Trainer, n)
	var all sync.WaitGroup
	for rank, world := range local.New(n, local.Options{Timeout: Timeout(cfg)}) {
		all.Go(func() {
			if lists[rank], errs[rank] = trainAsPlanned(t, cfg.Clone(), world, &trainers[rank]); errs[rank] != nil {
				world.Abort(errs[rank])
			}
		})
	}
	all.Wait()
	for _, tr := range trainers { // now that no rank reads another's tensors
		if tr != nil {
			tr.Close()
		}
	}
	return slices.Concat(lists...), firstOf(errs)
}

// firstOf returns the error of a rank that knows why it failed.
func firstOf(errs []error) error {
	for _, err := range errs {
		if lost := (*comm.LostError)(nil); err != nil && !errors.As(err, &lost) {
			return err
		}
	}
	return errors.Join(errs...)
}

func trainAsPlanned(t *testing.T, cfg *config.Config, world comm.Comm, tr **train.Trainer) (list []string, err error) {
	corpus, err := prepare.OpenCorpus(cfg)
	if err != nil {
		return nil, err
	}
	if err := corpus.OpenTraining(cfg); err != nil {
		return nil, err
	}
	dev, err := cpu.New(1)
	if err != nil {
		return nil, err
	}
	t.Cleanup(dev.Close)
	planned, err := train.MeasureRank(cfg, dev, absent.New(world.Rank(), world.Size(), true))
	if err != nil {
		return nil, err
	}
	if *tr, err = train.NewRank(cfg, dev, world); err != nil {
		return nil, err
	}
	ctx := context.Background()
	for range 2 {
		if _, err := (*tr).Step(ctx, corpus.Train); err != nil {
			return nil, err
		}
	}
	if err := (*tr).Settle(); err != nil {
		return nil, err
	}
	text, err := corpus.HeldOut(cfg.Model.Context)
	if err == nil {
		_, err = (*tr).Evaluate(ctx, text, 1024) // a micro-batch for every rank
	}
	// what the plan must allow for, but two steps of a rank may not need
	mayTakeLess := cfg.Model.StochasticDepth > 0 || cfg.Train.LengthWarmup.Given() || idleRank(cfg, world.Rank())
	for _, a := range (*tr).Arenas() {
		got, want := int64(a.Peak()), planned.Bytes(a.Name())
		if got != want && !(mayTakeLess && got < want) {
			list = append(list, fmt.Sprintf("rank %d: %s holds %d bytes, %d planned",
				world.Rank(), a.Name(), got, want))
		}
	}
	return list, err
}

// idleRank reports whether a rank computes nothing, because others have all micro-batches of a step.
func idleRank(cfg *config.Config, rank int) bool {
	n := cfg.Parallel.Ranks
	tensor, context, stages := cfg.Parallel.Mesh()
	at := parallel.Sizes{Tensor: tensor, Context: context, Pipeline: stages}.At(rank, n)
	micro := cfg.Train.BatchTokens / (cfg.Train.MicroBatch * cfg.Model.Context)
	return at.Data*max(cfg.Parallel.SumBlock, 1) >= micro
}
