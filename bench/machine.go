package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/machine"
	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// exercises are the training steps whose kernel calls `bench machine` times: within a step, operands are in the caches
// to the same extent as in any run. The models have so many layers that a step does not fit in a cache. Their sizes
// cover the models that a machine can train; calls of sizes in between are interpolated.
var exercises = slices.Concat([]exercise{
	{benchModel(4, 128, 4, 512, 256, 3072), 8, 2, "bf16", "adamw"},
	{benchModel(2, 128, 4, 384, 2048, 1024), 1, 1, "bf16", "adamw"},
	{benchModel(3, 256, 4, 704, 512, 8192), 4, 2, "bf16", "adamw"},
	{benchModel(3, 512, 8, 1408, 256, 4096), 8, 1, "bf16", "adamw"},
	{benchModel(2, 1024, 16, 2816, 512, 4096), 2, 1, "bf16", "adamw"},
	{benchGPT2(3, 256, 4, 256, 4096), 8, 2, "bf16", "adamw"},
	{benchGPT2(1, 640, 10, 1024, 16384), 2, 1, "bf16", "adamw"},
	{benchModel(2, 128, 4, 384, 64, 1024), 2, 1, "bf16", "muon"},
	{benchModel(1, 256, 4, 704, 64, 1024), 2, 1, "bf16", "muon"},
}, updates("adamw", "adam", "sgd", "lion", "adam8bit", "ademamix", "adafactor", "sophia", "muon"))

// An exercise is a model with the settings of its training.
type exercise struct {
	model                model.Config
	rows, micros         int
	precision, optimizer string
}

// updates are exercises of few tokens, so that the update is a large part of a step. Muon's products have sizes of
// their own, so Muon has exercises of several widths.
func updates(optimizers ...string) (list []exercise) {
	for _, name := range optimizers {
		list = append(list, exercise{benchModel(1, 512, 8, 1408, 64, 16384), 2, 1, "bf16", name})
	}
	return list
}

// Steps of an exercise: one to warm up, then as many as the measurement needs. All exercises take turns in rounds,
// because disturbances of a machine last for seconds.
const (
	leastSteps      = 1
	exerciseSeconds = 0.15
	exerciseRounds  = 2
)

// Machine measures the profile of this machine's CPU, with one thread and with all. It calls each, unless that is nil,
// before each exercise.
func Machine(ctx context.Context, each func(done, all int)) (*machine.Profile, error) {
	p := &machine.Profile{Measured: time.Now().UTC().Truncate(time.Second)}
	threads := slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	list := slices.Clone(exercises)
	for _, e := range exercises {
		if e.optimizer == "adamw" { // the other optimizers differ only in their update
			e.precision = "fp32"
			list = append(list, e)
		}
	}
	done := 0
	for _, n := range threads {
		samples, peak := map[device.Call]float64{}, map[string]float64{}
		for range exerciseRounds {
			calls := map[device.Call][]float64{}
			for _, e := range list {
				if each != nil {
					each(done, len(threads)*exerciseRounds*len(list))
				}
				cfg, err := e.config()
				if err != nil {
					return nil, err
				}
				if err := timeCalls(ctx, cfg, n, p, calls, peak); err != nil {
					return nil, err
				}
				done++
			}
			keepFaster(samples, calls)
		}
		p.Sections = append(p.Sections, machine.Section{Threads: n, Peak: peak, Samples: samplesOf(samples)})
	}
	return p, nil
}

// config returns the configuration of an exercise.
func (e exercise) config() (*config.Config, error) {
	cfg := config.Default()
	cfg.Precision, cfg.Model = e.precision, e.model
	cfg.Train.MicroBatch, cfg.Train.BatchTokens = e.rows, e.micros*e.rows*e.model.Context
	cfg.Data.Path = "random"
	if err := cfg.Override("optimizer.name=" + e.optimizer); err != nil {
		return nil, err
	}
	cfg.Resolve()
	return cfg, cfg.Validate()
}

// timeCalls adds the times of the calls in training steps on a number of threads. The first of a round also measures
// the peaks, and keeps those that are higher than before.
func timeCalls(ctx context.Context, cfg *config.Config, threads int, p *machine.Profile,
	calls map[device.Call][]float64, peak map[string]float64) error {
	dev, err := train.OpenDevice(cfg, "cpu", threads)
	if err != nil {
		return err
	}
	defer dev.Close()
	p.Key = machine.KeyOf(dev)
	if len(calls) == 0 { // once a round
		for _, operand := range []tensor.DType{tensor.BF16, tensor.F32} {
			peak[operand.String()] = max(peak[operand.String()], dev.Peak(operand))
		}
	}
	rec := device.NewRecorder(dev)
	t, err := train.New(cfg, rec)
	if err != nil {
		return err
	}
	defer t.Close()
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	if _, err := t.Step(ctx, src); err != nil {
		return err
	}
	clear(rec.Calls)
	rec.Timed = true
	for n, begin := 0, time.Now(); n < leastSteps || time.Since(begin).Seconds() < exerciseSeconds; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := t.Step(ctx, src); err != nil {
			return err
		}
	}
	for c, tally := range rec.Calls {
		calls[c.Call] = append(calls[c.Call], tally.Seconds...)
	}
	return nil
}

// keepFaster merges the times of a round's calls into those of earlier rounds, keeping the faster.
func keepFaster(samples map[device.Call]float64, calls map[device.Call][]float64) {
	for c, times := range calls {
		took := usualOf(times)
		if before, known := samples[c]; known {
			took = min(took, before)
		}
		samples[c] = took
	}
}

// usualOf returns the mean of the times without the slowest tenth. The mean counts, because a step also pays for
// occasional slow calls; the slowest are the calls that other programs interrupted.
func usualOf(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	sorted = sorted[:len(sorted)-len(sorted)/10]
	sum := 0.0
	for _, x := range sorted {
		sum += x
	}
	return sum / float64(len(sorted))
}

// samplesOf lists samples in a fixed order.
func samplesOf(calls map[device.Call]float64) []machine.Sample {
	var list []machine.Sample
	for c, took := range calls {
		list = append(list, machine.Sample{Call: c, Seconds: took})
	}
	slices.SortFunc(list, func(a, b machine.Sample) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Types, b.Types), cmp.Compare(a.Ops, b.Ops),
			cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return list
}
