package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/checkpoint"
	"anneal/comm/local"
	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

// ranksConfig is a small run on n ranks, each with one of the four micro-batches of a step at most.
func ranksConfig(data string, n int) *config.Config {
	cfg := traintest.Config(data)
	cfg.Train.MicroBatch, cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Checkpoint.Every = 2, 12, 6, 5
	cfg.Parallel.Ranks, cfg.Parallel.Timeout = n, 1
	return cfg
}

// wantHash compares the state that a run ends with.
func wantHash(t *testing.T, r *Result, want [2]string) {
	t.Helper()
	if got := [2]string{r.WeightsHash, r.OptimizerHash}; got != want {
		t.Errorf("it ends with other bits: %.12s, want %.12s", got, want)
	}
}

// wholeRun is the run on one rank, and what it ends with.
func wholeRun(t *testing.T, data string) (dir string, hashes [2]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "whole")
	r := mustRun(t, Options{Config: ranksConfig(data, 1), Dir: dir, Threads: 4})
	return dir, [2]string{r.WeightsHash, r.OptimizerHash}
}

// A run on several ranks ends with the bits of one, and leaves one run directory with the same metrics.
func TestRanksMakeTheRunOfOne(t *testing.T) {
	data := traintest.Data(t)
	whole, want := wholeRun(t, data)
	for zero, n := range []int{2, 3, 3, 2} {
		var said said
		var mu sync.Mutex
		var steps []int
		dir, cfg := filepath.Join(t.TempDir(), "run"), ranksConfig(data, n)
		cfg.Parallel.Zero = zero
		r := mustRun(t, Options{Config: cfg, Dir: dir, Threads: 4, Warn: said.warn,
			OnProgress: func(e train.Event) { mu.Lock(); steps = append(steps, e.Step); mu.Unlock() }})
		wantHash(t, r, want)
		if len(steps) != 12 || !slices.IsSorted(steps) {
			t.Errorf("%d ranks: progress was shown of steps %v", n, steps)
		}
		if text := said.all(); text != "" {
			t.Errorf("%d ranks: warnings\n%s", n, text)
		}
		if v, err := Verify(dir); err != nil || len(v.Remarks) > 0 || len(v.Checkpoints) != 3 {
			t.Errorf("%d ranks: %+v, %v", n, v, err)
		}
		one, many := readMetrics(t, whole), readMetrics(t, dir)
		for i := range one {
			if one[i]["loss"] != many[i]["loss"] || one[i]["val_loss"] != many[i]["val_loss"] {
				t.Errorf("%d ranks: step %d is %v, want %v", n, i+1, many[i], one[i])
			}
		}
	}
}

// A run is stopped by its caller on all ranks after the same step, and resumed on any other number of them.
func TestResumeOnOtherRanks(t *testing.T) {
	data := traintest.Data(t)
	_, want := wholeRun(t, data)
	dir := filepath.Join(t.TempDir(), "run")
	o := Options{Config: ranksConfig(data, 2), Dir: dir, Threads: 4}
	for i, stop := range []int{3, 5, 8} {
		ctx, cancel := context.WithCancel(context.Background())
		o.OnProgress = func(e train.Event) {
			if e.Step == stop {
				cancel()
			}
		}
		begin := Resume
		if i == 0 {
			begin = Run
		}
		r, err := begin(ctx, o)
		if err != nil || !r.Interrupted || r.Step < stop || r.Step > stop+1 {
			t.Fatalf("stopped at step %d: %+v, %v", stop, r, err)
		}
		o.Overrides = [][]string{
			{"parallel.ranks=3", "parallel.zero=3"}, {"parallel.ranks=1"}, {"parallel.ranks=2", "parallel.zero=1"},
		}[i]
	}
	o.OnProgress = nil
	r, err := Resume(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantHash(t, r, want)
}

// A checkpoint that somebody asks for is written by all ranks.
func TestRanksSaveWhenAsked(t *testing.T) {
	cfg, dir := ranksConfig(traintest.Data(t), 2), filepath.Join(t.TempDir(), "run")
	cfg.Checkpoint.Every = 0
	saves := make(chan struct{}, 1)
	mustRun(t, Options{Config: cfg, Dir: dir, Threads: 4, Saves: saves, OnProgress: func(e train.Event) {
		if e.Step == 3 {
			saves <- struct{}{}
		}
	}})
	list, err := checkpoint.List(filepath.Join(dir, "checkpoints"))
	if err != nil || len(list) != 2 || list[1].Step != 4 {
		t.Errorf("checkpoints %+v, %v; want those of steps 12 and 4", list, err)
	}
}

// A run that diverges goes back on all ranks.
func TestRanksGoBackTogether(t *testing.T) {
	data := traintest.Data(t)
	var want [2]string
	for n := 1; n <= 2; n++ {
		cfg := spikyConfig(data)
		cfg.Train.MicroBatch, cfg.Parallel.Ranks = 4, n
		var s said
		r, err := Run(context.Background(), Options{
			Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Threads: 4, Warn: s.warn,
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.all(), "training diverged at step ") {
			t.Error("the run did not diverge")
		}
		if n == 1 {
			want = [2]string{r.WeightsHash, r.OptimizerHash}
		}
		wantHash(t, r, want)
	}
}

// What cannot be is one error, before anything is written.
func TestRanksRefuseWhatCannotBe(t *testing.T) {
	data := traintest.Data(t)
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"more ranks than threads": {func(c *config.Config) { c.Parallel.Ranks = 9 }, "each rank needs one"},
	} {
		cfg, dir := ranksConfig(data, 2), filepath.Join(t.TempDir(), "run")
		c.change(cfg)
		_, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Threads: 4})
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(config.Problem)) {
			t.Errorf("%s: %v", name, err)
		}
		if Exists(dir) {
			t.Errorf("%s: a run was made", name)
		}
	}
}

// A branch on several ranks is the branch on one.
func TestRanksBranch(t *testing.T) {
	data := traintest.Data(t)
	whole, _ := wholeRun(t, data)
	var want [2]string
	for n := 1; n <= 2; n++ {
		cfg := ranksConfig(data, n)
		cfg.Train.Steps, cfg.Parallel.Zero = 14, 2
		r, err := Branch(context.Background(), Options{
			Config: cfg, Dir: filepath.Join(t.TempDir(), "branch"), Threads: 4,
		}, whole, 10)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			want = [2]string{r.WeightsHash, r.OptimizerHash}
		}
		wantHash(t, r, want)
	}
}

// A part that a rank cannot write is a failed save: the run goes on if it has an earlier checkpoint, and the leader
// says which rank it was.
func TestAFailedPartIsAFailedSave(t *testing.T) {
	for _, saved := range []bool{true, false} {
		dir, cfg := runDir(t.TempDir()), traintest.Config("data")
		cfg.Checkpoint.Every = 0
		store, err := checkpoint.Open(dir.checkpoints(), checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		tensors := []checkpoint.Tensor{{Name: "w", DType: "F32", Shape: []int{2}, Data: make([]byte, 8)}}
		if saved {
			if err := errors.Join(store.Save(3, 30, tensors, nil), store.Wait()); err != nil {
				t.Fatal(err)
			}
		}
		name, err := store.Begin(5, 50, nil)
		if err != nil {
			t.Fatal(err)
		}
		var said said
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for rank, world := range local.New(2, local.Options{}) {
			s := &session{cfg: cfg, dir: dir, world: group{Comm: world}}
			s.Dir, s.Warn = string(dir), said.warn
			s.parts = parts{writer: &checkpoint.Writer{Root: dir.checkpoints(), Number: rank}, underway: true}
			s.saving = saving{step: 5, underway: true}
			if rank == 0 {
				s.store = store
			} else {
				s.parts.writer.Root = filepath.Join(string(dir), "nowhere")
			}
			tensors[0].Name = fmt.Sprint("w", rank)
			s.parts.failed = s.parts.writer.Write(name, tensors)
			wg.Go(func() { errs[rank] = s.settleParts() })
		}
		wg.Wait()
		text := said.all() + fmt.Sprint(errs[0])
		if (errs[0] == nil) != saved || errs[1] != nil || !strings.Contains(text, "cannot save step 5: rank 1 (") {
			t.Errorf("saved before %v: %v, %v\n%s", saved, errs[0], errs[1], text)
		}
		if Agreed(errs[0]) {
			t.Errorf("the leader ends without the other rank, which goes on: %v", errs[0])
		}
		if list, err := os.ReadDir(dir.checkpoints()); err != nil || saved != slices.ContainsFunc(list,
			func(e os.DirEntry) bool { return e.Name() == "step-00000003" }) || slices.ContainsFunc(list,
			func(e os.DirEntry) bool { return e.Name() == name }) {
			t.Errorf("%v remains, %v", list, err)
		}
	}
}

// A rank that panics or hangs ends the others within the deadline and two seconds. The error says which rank and where,
// and the run goes on from its last checkpoint, on fewer ranks, to the bits of a run that nothing disturbed.
func TestALostRankEndsAll(t *testing.T) {
	data := traintest.Data(t)
	_, want := wholeRun(t, data)
	for fault, says := range map[string][]string{
		"rank:2:step:9:panic": {"rank 2 (", "panic in step 9: ANNEAL_FAULT"},
		"rank:0:step:9:panic": {"rank 0 (", "panic in step 9: ANNEAL_FAULT"},
		"rank:1:step:9:hang":  {"step 9: rank 1 (", "process ", "did not reach ", " within 1s", "anneal resume"},
	} {
		t.Setenv(FaultVariable, fault)
		cfg, dir := ranksConfig(data, 3), filepath.Join(t.TempDir(), "run")
		cfg.Parallel.Timeout = 1.0 / 60
		begun := time.Now()
		_, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Threads: 4})
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("%s: it took %v", fault, took)
		}
		for _, s := range says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, want %q", fault, err, s)
			}
		}
		if err != nil && strings.Contains(err.Error(), "rank 0 (") && !strings.HasPrefix(fault, "rank:0") {
			t.Errorf("%s: it names a rank that waited: %v", fault, err)
		}
		t.Setenv(FaultVariable, "")
		r, err := Resume(context.Background(), Options{Dir: dir, Threads: 4, Overrides: []string{"parallel.ranks=2"}})
		if err != nil {
			t.Fatalf("%s: %v", fault, err)
		}
		wantHash(t, r, want)
	}
}

// A rank that is slow holds the others up and changes nothing; ranks/ says who waits for what, while it does.
func TestASlowRankIsWaitedFor(t *testing.T) {
	data := traintest.Data(t)
	_, want := wholeRun(t, data)
	t.Setenv(FaultVariable, "rank:1:step:9:slow")
	dir := filepath.Join(t.TempDir(), "run")
	seen, done := make(chan bool, 1), make(chan struct{})
	says := func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "ranks", "0000"))
		return strings.Contains(string(text), `"step":9,"waits":`)
	}
	go func() {
		for ok := false; ; time.Sleep(10 * time.Millisecond) {
			ok = ok || says()
			select {
			case <-done:
				seen <- ok
				return
			default:
			}
		}
	}()
	r := mustRun(t, Options{Config: ranksConfig(data, 2), Dir: dir, Threads: 4})
	close(done)
	wantHash(t, r, want)
	if !<-seen {
		t.Error("ranks/0000 has not said that rank 0 waits in step 9")
	}
}

func TestAFaultThatSaysNothingIsRefused(t *testing.T) {
	for _, text := range []string{"rank:1", "rank:1:step:2:explode", "rank:x:step:2:kill"} {
		t.Setenv(FaultVariable, text)
		if _, err := readFault(); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// A run that continues on one rank no longer lists the ranks that it had.
func TestARunAloneHasNoOtherRanks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: smallConfig(t, traintest.Data(t), "parallel.ranks=2"), Dir: dir})
	if n := len(Ranks(dir)); n != 2 {
		t.Fatalf("a run on two ranks lists %d", n)
	}
	o := Options{Dir: dir, Overrides: []string{"parallel.ranks=1", "train.steps=5"}}
	if _, err := Resume(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if left := Ranks(dir); len(left) > 0 {
		t.Errorf("continued on one, it lists %+v", left)
	}
}
