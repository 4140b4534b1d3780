package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"anneal/config"
	"anneal/machine"
	"anneal/plan"
	"anneal/train"
)

// PlanCase compares the predicted time of a step with the measured one.
type PlanCase struct {
	Shape     string  `json:"shape"`
	Precision string  `json:"precision"`
	Threads   int     `json:"threads"` // of all ranks
	Ranks     int     `json:"ranks"`
	Set       string  `json:"set"`                    // further values of the configuration, separated by blanks
	Predicted float64 `json:"predicted_step_seconds"` // seconds
	Measured  float64 `json:"measured_step_seconds"`  // as measuredStep says
	Off       float64 `json:"off"`                    // predicted over measured, less 1
}

// variants are configuration values that change the computation of a step. Sophia estimates its curvature in one of
// the steps of a round.
var variants = []string{
	"memory.recompute=selective", "memory.recompute=sqrt", "memory.recompute=every_layer", "optimizer.name=adam8bit",
	"optimizer.name=sgd", "optimizer.name=lion", "optimizer.name=ademamix", "optimizer.name=adafactor",
	"optimizer.name=muon", fmt.Sprintf("optimizer.name=sophia optimizer.hessian_every=%d", stepsPerRound),
}

// PlanCases lists the cases of a shape: both precisions with one thread and with all, two ranks, and, for the smaller
// shapes, each recomputation strategy and each optimizer.
func PlanCases(shape string) (list []PlanCase) {
	all := runtime.GOMAXPROCS(0)
	for _, precision := range []string{"bf16", "fp32"} {
		for _, threads := range slices.Compact([]int{1, all}) {
			list = append(list, PlanCase{Shape: shape, Precision: precision, Threads: threads, Ranks: 1})
		}
		if all > 1 {
			list = append(list, PlanCase{Shape: shape, Precision: precision, Threads: all, Ranks: 2})
		}
	}
	if shape != "demo" && shape != "tiny" {
		return list
	}
	for _, v := range variants {
		list = append(list, PlanCase{Shape: shape, Precision: "bf16", Threads: 1, Ranks: 1, Set: v})
	}
	return list
}

// Plan compares a case: it predicts the time of a step from the profile of this machine and then measures a few steps.
func Plan(ctx context.Context, c PlanCase) (PlanCase, error) {
	cfg, err := c.config()
	if err != nil {
		return c, err
	}
	dev, err := train.OpenDevice(cfg, "", 0)
	if err != nil {
		return c, err
	}
	speeds, err := machine.Load(machine.KeyOf(dev))
	var predicted *plan.Time
	if err == nil {
		predicted, err = plan.TimeOf(cfg, dev, speeds, nil)
	}
	dev.Close()
	if err != nil {
		return c, err
	}
	var rounds [][]float64 // ms
	for range 2 {          // each in memory of its own
		m, err := inProcess(ctx, cfg, &RanksCase{Ranks: c.Ranks, Threads: c.Threads / c.Ranks})
		if err != nil {
			return c, err
		}
		rounds = append(rounds, m.Times)
	}
	c.Predicted, c.Measured = predicted.Step, measuredStep(rounds)/1e3
	c.Off = c.Predicted/c.Measured - 1
	return c, nil
}

// measuredStep returns the mean over the steps of a round. Each step counts with its fastest time over all rounds,
// because other programs only slow steps down.
func measuredStep(rounds [][]float64) float64 {
	sum := 0.0
	for i := range rounds[0] {
		least := rounds[0][i]
		for _, r := range rounds {
			least = min(least, r[i])
		}
		sum += least
	}
	return sum / float64(len(rounds[0]))
}

// config returns the configuration of a case, with a micro-batch for each rank.
func (c PlanCase) config() (*config.Config, error) {
	cfg, err := Options{Shape: c.Shape, Precision: c.Precision, Threads: c.Threads}.config(strings.Fields(c.Set)...)
	if err != nil {
		return nil, err
	}
	cfg.Train.BatchTokens *= c.Ranks
	if c.Ranks > 1 {
		cfg.Parallel.Ranks = c.Ranks
	}
	return cfg, cfg.Validate()
}
