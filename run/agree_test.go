package run

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"anneal/comm"
	"anneal/comm/local"
	"anneal/tensor"
	"anneal/train"
	"anneal/train/traintest"
)

// onEach calls f on n ranks and returns their errors.
func onEach(n int, f func(world comm.Comm) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for rank, world := range local.New(n, local.Options{}) {
		wg.Go(func() { errs[rank] = f(world) })
	}
	wg.Wait()
	return errs
}

// coded gives every error of a test a code of its own.
func coded(err error) int {
	code := 1
	_, text, _ := strings.Cut(err.Error(), "error ")
	fmt.Sscanf(text, "%d", &code)
	return code
}

// If one rank fails, all have its exit code; one of them tells the error, which names the rank unless it leads.
func TestAnErrorKeepsItsCodeOnAllRanks(t *testing.T) {
	for name, c := range map[string]struct {
		of    map[int]error
		rank  int
		names bool
	}{
		"the last":   {map[int]error{2: errors.New("error 6")}, 2, true},
		"the leader": {map[int]error{0: errors.New("error 3")}, 0, false},
		"two":        {map[int]error{1: errors.New("error 9"), 2: errors.New("error 5")}, 1, true},
	} {
		want := c.of[c.rank]
		for rank, err := range onEach(3, func(world comm.Comm) error {
			return Agree(world, c.of[world.Rank()], coded)
		}) {
			remote := (*RankError)(nil)
			switch {
			case !Agreed(err) || ToldElsewhere(err) == (rank == c.rank):
				t.Errorf("%s: rank %d: %v", name, rank, err)
			case rank == c.rank:
				if !errors.Is(err, want) || strings.Contains(err.Error(), fmt.Sprintf("rank %d (", rank)) != c.names {
					t.Errorf("%s: rank %d: %v", name, rank, err)
				}
			case !errors.As(err, &remote) || remote.Code != coded(want) || remote.Rank != c.rank:
				t.Errorf("%s: rank %d: %v, want the code %d", name, rank, err, coded(want))
			}
		}
	}
}

// textComm is a group of which other processes learn no more than the text of why it ended.
type textComm struct{ comm.Comm }

func (c textComm) Abort(err error) { c.Comm.Abort(errors.New(err.Error())) }

// A rank that fails amid work ends the others with its own exit code, in one process and in several.
func TestARankThatFailsAloneGivesItsCode(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for rank, err := range onEach(3, func(world comm.Comm) error {
			if apart {
				world = textComm{world}
			}
			g := group{world, coded}
			if world.Rank() == 1 {
				return g.failed(errors.New("error 6: the device is gone"), nil)
			}
			_, err := g.Share(nil)
			return g.failed(err, nil)
		}) {
			remote := (*RankError)(nil)
			switch told := errors.As(err, &remote); {
			case rank == 1 && (told || err == nil):
				t.Errorf("apart %v: rank 1: %v", apart, err)
			case rank != 1 && (!told || remote.Code != 6 || remote.Rank != 1 || !ToldElsewhere(err)):
				t.Errorf("apart %v: rank %d: %v", apart, rank, err)
			}
		}
	}
}

// Where a rank has too little memory, a process started by a launcher is unfit for the run; ranks of one process have
// the error of that process.
func TestARankOutOfMemoryIsNamed(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for rank, err := range onEach(2, func(world comm.Comm) (err error) {
			if apart {
				world = apartComm{world}
			}
			s := &session{Options: Options{World: world}, world: group{Comm: world}}
			if world.Rank() == 1 {
				err = s.outOfMemory(&train.MemoryError{Need: 2 << 30, Available: 1 << 30})
			}
			return s.world.agree(err)
		}) {
			unfit := (*UnfitError)(nil)
			if apart != errors.As(err, &unfit) && rank == 1 || strings.Count(err.Error(), "rank 1 (") != 1 {
				t.Errorf("apart %v: rank %d: %v", apart, rank, err)
			}
		}
	}
	other := errors.New("another")
	if s := (&session{Options: Options{World: apartComm{}}}); s.outOfMemory(other) != other {
		t.Error("another error is one of memory")
	}
}

// apartComm is a group of processes.
type apartComm struct{ comm.Comm }

func (apartComm) InPlace() bool { return false }

// A rank whose gradient is not finite makes all skip the step: the run ends with the same bits whichever rank it is, at
// every stage of ZeRO and in every format that gradients travel in.
func TestANaNOfOneRankIsSkippedByAll(t *testing.T) {
	data := traintest.Data(t)
	for _, wire := range []string{"f32", "bf16", "int8"} {
		var want [2]string
		for zero := range 4 {
			t.Setenv(FaultVariable, fmt.Sprintf("rank:%d:step:4:nan", zero%3))
			cfg, dir := ranksConfig(data, 3), t.TempDir()
			cfg.Train.Steps, cfg.Parallel.Zero, cfg.Parallel.Wire = 6, zero, wire
			var said said
			r := mustRun(t, Options{Config: cfg, Dir: dir, Threads: 3, Warn: said.warn})
			if zero == 0 {
				want = [2]string{r.WeightsHash, r.OptimizerHash}
			}
			wantHash(t, r, want)
			for i, line := range readMetrics(t, dir) {
				if skipped := line["skipped"] == true; skipped != (i == 3) {
					t.Errorf("zero %d, %s: step %d: skipped is %v", zero, wire, i+1, skipped)
				}
			}
		}
	}
}

// The gradient that a rank sends is spoiled once, and only where it is the rank.
func TestAFaultSpoilsOneGradient(t *testing.T) {
	arena, err := tensor.NewArena("test", 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	for text, want := range map[string]int{"rank:1:step:2:nan": 1, "rank:0:step:2:nan": 0, "rank:1:step:3:nan": 0} {
		t.Setenv(FaultVariable, text)
		f, err := readFault()
		if err != nil {
			t.Fatal(err)
		}
		codes, numbers := arena.New(tensor.U8, 4), arena.New(tensor.F32, 4)
		f.strike(1, 2)
		spoiled := 0
		for range 2 {
			f.spoil([][]tensor.Tensor{nil, {codes, numbers}})
			if x := numbers.Float64(0); x != x {
				spoiled++
			}
			numbers.SetFloat64(0, 1)
		}
		if spoiled != want {
			t.Errorf("%s: %d gradients are spoiled, want %d", text, spoiled, want)
		}
	}
}
