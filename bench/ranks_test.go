package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/comm/local"
	"anneal/program"
)

func TestBenchRanksComparesEveryStage(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("two ranks need two cores")
	}
	r, err := Ranks(context.Background(),
		Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}, "zero", 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) != 5 || r.Rounds != 3 || r.TokensPerStep != 64 || r.Tier == "" {
		t.Fatalf("%+v", r)
	}
	for i, c := range r.Cases {
		ranks, threads, name := 2, 1, fmt.Sprint("ZeRO ", i-1)
		if i == 0 {
			ranks, threads, name = 1, 2, "one rank"
		}
		if c.Ranks != ranks || c.Threads != threads || c.Name != name || len(c.times) != 3*stepsPerRound {
			t.Errorf("case %d: %+v", i, c)
		}
		if want := 64e3 / c.StepMs; math.Abs(c.TokensPerSecond-want) > 1e-9*want || !(c.OfOneRank > 0) {
			t.Errorf("case %d: %v tokens/s at %v ms, %v of one rank", i, c.TokensPerSecond, c.StepMs, c.OfOneRank)
		}
	}
	if r.Cases[0].OfOneRank != 1 || r.Cases[1].OfFirst != 1 {
		t.Errorf("a case is %v and %v of itself", r.Cases[0].OfOneRank, r.Cases[1].OfFirst)
	}
}

// Ranks that share nothing but a group measure the same cases, and all get the figures of rank 0.
func TestBenchRanksOfAGroup(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("two ranks need two cores")
	}
	var results [2]*RanksResult
	var errs [2]error
	var all sync.WaitGroup
	for i, world := range local.New(2, local.Options{}) {
		all.Go(func() {
			results[i], errs[i] = RanksOver(context.Background(),
				Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}, "zero", world)
		})
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if len(r.Cases) != 5 || r.Rounds != 3 || r.Cases[0].Threads != 2 || r.Cases[4].Threads != 1 ||
		len(r.Cases[0].times) != 3*stepsPerRound || !reflect.DeepEqual(r, results[1]) {
		t.Errorf("%+v\n%+v", r, results[1])
	}
}

func TestRatiosOfRanksAreThoseOfTheirRounds(t *testing.T) {
	r := RanksResult{TokensPerStep: 100, Cases: []RanksCase{ // the machine is ten times slower in the last round
		{times: []float64{1, 2, 10}, rounds: []float64{1, 2, 10}},
		{times: []float64{2, 4, 20}, rounds: []float64{2, 4, 20}},
	}}
	if r.compare(); r.Cases[1].OfOneRank != 0.5 || r.Cases[1].StepMs != 4 || r.Cases[1].TokensPerSecond != 25e3 {
		t.Errorf("%+v", r.Cases[1])
	}
}

func TestBenchRanksRefusesWhatCannotBe(t *testing.T) {
	o := Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}
	for ranks, want := range map[int]string{
		1: "ranks = 1", -2: "ranks = -2", 3: "3 ranks need one thread each, but there are only 2",
	} {
		if _, err := Ranks(context.Background(), o, "zero", ranks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d ranks: %v", ranks, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Ranks(ctx, o, "zero", 2); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Each way to share the work along an axis makes the same steps, and pipelines are compared with their simulation.
func TestBenchRanksAlongEveryAxis(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("two ranks need two cores")
	}
	for axis, want := range map[string][]string{
		"tensor": {"tensor", "sequence"}, "context": {"ring", "ulysses"},
		"pipeline": {"1f1b", "gpipe", "interleaved:2", "zb-h1"},
	} {
		r, err := Ranks(context.Background(),
			Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}, axis, 2)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range r.Cases[1:] {
			names = append(names, c.Name)
			if c.Ranks != 2 || !(c.OfOneRank > 0) || !(c.OfFirst > 0) || (c.Pipeline != nil) != (axis == "pipeline") {
				t.Errorf("%s: %+v", axis, c)
			}
		}
		if !slices.Equal(names, want) || r.TokensPerStep != 32*r.MicroBatches || r.Axis != axis {
			t.Errorf("%s: %v, %+v", axis, names, r)
		}
		if axis != "pipeline" {
			continue
		}
		for _, c := range r.Cases[1:] {
			p := c.Pipeline
			if p.Ideal != 1-p.SimulatedIdleShare || !(p.IdleShare > 0 && p.IdleShare < 1) || !(p.ComputeMs > 0) ||
				(p.Parts[0].BackwardWeightsMs > 0) != (c.Name == "zb-h1") {
				t.Errorf("%s: %+v", c.Name, p)
			}
		}
	}
}

func TestPipelinesAreSimulatedWithWhatTheirPartsTook(t *testing.T) {
	ms := int64(time.Millisecond)
	took := func(forward, backward int64, step time.Duration) stageTimes {
		return stageTimes{
			Steps: []stageStep{{step * time.Millisecond, time.Duration(8 * (forward + backward) * ms)}},
			Computed: map[program.Op][][]int64{
				program.Forward: {{forward * ms}}, program.Backward: {{backward * ms}},
			},
		}
	}
	r := RanksResult{MicroBatches: 8, Cases: []RanksCase{{}, {
		Name: "1f1b", Ranks: 2, OfOneRank: 0.8, stages: [][]stageTimes{{took(1, 2, 30), took(1, 2, 28)}},
	}}}
	if err := r.comparePipelines(); err != nil {
		t.Fatal(err)
	}
	p := r.Cases[1].Pipeline
	if math.Abs(p.Ideal-8.0/9) > 1e-12 || math.Abs(p.OfIdeal-0.9) > 1e-12 || math.Abs(p.IdleShare-0.2) > 1e-12 ||
		p.ComputeMs != 48 || p.Parts[1] != (PartCosts{1, 2, 0}) {
		t.Errorf("%+v", p)
	}
}
