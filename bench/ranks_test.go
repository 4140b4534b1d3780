package bench

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"anneal/comm/local"
)

func TestBenchRanksComparesEveryStage(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("two ranks need two cores")
	}
	r, err := Ranks(context.Background(),
		Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) != 5 || r.Rounds != 3 || r.TokensPerStep != 64 || r.Tier == "" {
		t.Fatalf("%+v", r)
	}
	for i, c := range r.Cases {
		ranks, threads, stage := 2, 1, i-1
		if i == 0 {
			ranks, threads, stage = 1, 2, 0
		}
		if c.Ranks != ranks || c.Threads != threads || c.Zero != stage || len(c.times) != 3*stepsPerRound {
			t.Errorf("case %d: %+v", i, c)
		}
		if want := 64e3 / c.StepMs; math.Abs(c.TokensPerSecond-want) > 1e-9*want || !(c.OfOneRank > 0) {
			t.Errorf("case %d: %v tokens/s at %v ms, %v of one rank", i, c.TokensPerSecond, c.StepMs, c.OfOneRank)
		}
	}
	if r.Cases[0].OfOneRank != 1 || r.Cases[1].OfZero0 != 1 {
		t.Errorf("a case is %v and %v of itself", r.Cases[0].OfOneRank, r.Cases[1].OfZero0)
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
				Options{Shape: "demo", Precision: "bf16", Threads: 2, Batch: 1, Context: 32}, world)
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
		1: "ranks = 1", -2: "ranks = -2", 3: "3 ranks need a thread each, and there are 2",
	} {
		if _, err := Ranks(context.Background(), o, ranks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d ranks: %v", ranks, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Ranks(ctx, o, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
