package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

// TestMain lets the test binary act as a training process that a test can kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ANNEAL_TEST_STALL"); dir != "" {
		os.Exit(childStall(dir, os.Getenv("ANNEAL_TEST_DATA")))
	}
	if dir := os.Getenv("ANNEAL_TEST_RUN"); dir != "" {
		os.Exit(childRun(dir, os.Getenv("ANNEAL_TEST_DATA"), os.Getenv("ANNEAL_TEST_INIT")))
	}
	os.Exit(m.Run())
}

// childRun starts the run in dir, from weights unless from is empty, or resumes it.
func childRun(dir, data, from string) int {
	o := Options{Dir: dir}
	var err error
	if Exists(dir) {
		_, err = Resume(context.Background(), o)
	} else {
		if o.Config = killConfig(data); from != "" {
			o.Config = killInitConfig(data, from)
		}
		_, err = Run(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// killConfig is a run of about a second that saves often.
func killConfig(data string) *config.Config {
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Train.EvalEvery = 800, 25, 400
	return cfg
}

func mustRun(t testing.TB, o Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readMetrics(t testing.TB, dir string) []map[string]any {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []map[string]any
	for s := bufio.NewScanner(f); s.Scan(); {
		var l map[string]any
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("line %d of metrics.jsonl: %v", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestRunLearnsAndLeavesACompleteRunDirectory(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	cfg := traintest.Config(data)
	cfg.Train.Steps = 150
	cfg.Resolve()
	r := mustRun(t, Options{Config: cfg, Dir: dir})
	if r.Step != 150 || r.Tokens != 150*256 || r.Interrupted {
		t.Errorf("ended at step %d with %d tokens, interrupted %v", r.Step, r.Tokens, r.Interrupted)
	}
	lines := readMetrics(t, dir)
	if len(lines) != 150 {
		t.Fatalf("%d lines of metrics for 150 steps", len(lines))
	}
	first, last := lines[0]["loss"].(float64), lines[149]["loss"].(float64)
	if math.Abs(first-math.Log(320)) > 0.3 || last > 0.6*first {
		t.Errorf("loss went from %.3f (ln 320 = %.3f) to %.3f", first, math.Log(320), last)
	}
	if _, ok := lines[19]["val_bits_per_byte"]; !ok {
		t.Error("step 20 was evaluated but its line has no val_bits_per_byte")
	}
	weights, optimizer, info, err := checkpoint.Hash(filepath.Join(dir, "checkpoints"))
	if err != nil || weights != r.WeightsHash || optimizer != r.OptimizerHash || info.Step != 150 {
		t.Errorf("checkpoint has %.12s, %.12s at step %d (%v); the run reported %.12s, %.12s",
			weights, optimizer, info.Step, err, r.WeightsHash, r.OptimizerHash)
	}
	again, err := config.Load(filepath.Join(dir, "config.yaml"), nil)
	if err != nil || again.Train.Steps != 150 || again.Model.Vocab != cfg.Model.Vocab {
		t.Errorf("config.yaml does not read back: %v", err)
	}
}

// The bits of a run do not depend on the number of threads, nor on being stopped and resumed.
func TestThreadsAndInterruptionsDoNotChangeARun(t *testing.T) {
	data := traintest.Data(t)
	var want *Result
	for _, threads := range []int{1, 2} {
		r := mustRun(t, Options{Config: traintest.Config(data), Dir: filepath.Join(t.TempDir(), "run"),
			Threads: threads})
		if want == nil {
			want = r
		} else if r.WeightsHash != want.WeightsHash || r.OptimizerHash != want.OptimizerHash ||
			r.ValLoss != want.ValLoss {
			t.Errorf("2 threads give weights %.12s, 1 thread %.12s", r.WeightsHash, want.WeightsHash)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	stop := func(p train.Event) {
		if p.Step == 17 {
			cancel()
		}
	}
	r, err := Run(ctx, Options{Config: traintest.Config(data), Dir: dir, OnProgress: stop})
	if err != nil || !r.Interrupted || r.Step != 17 {
		t.Fatalf("interrupted run ended at step %d: %v", r.Step, err)
	}
	r, err = Resume(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if r.WeightsHash != want.WeightsHash || r.OptimizerHash != want.OptimizerHash || r.TrainLoss != want.TrainLoss {
		t.Errorf("resumed run has weights %.12s, uninterrupted %.12s", r.WeightsHash, want.WeightsHash)
	}
}

// Killed with SIGKILL at 50 random instants and resumed, a run ends with the bits and the metrics of one never killed.
func TestKilledRunsResumeBitForBit(t *testing.T) {
	data := traintest.Data(t)
	whole := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: killConfig(data), Dir: whole})
	losses := readMetrics(t, whole)

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	kills := 50
	if testing.Short() {
		kills = 10
	}
	for n := 0; kills > 0; n++ {
		dir := filepath.Join(t.TempDir(), fmt.Sprint("run", n))
		for done := false; !done; {
			delay := time.Duration(rng.IntN(250)) * time.Millisecond
			if kills == 0 {
				delay = time.Minute
			}
			done = runChild(t, dir, data, "", "", delay)
			if !done {
				kills--
			}
		}
		weights, optimizer, info, err := checkpoint.Hash(filepath.Join(dir, "checkpoints"))
		if err != nil || info.Step != 800 {
			t.Fatalf("run %d: step %d, %v", n, info.Step, err)
		}
		if weights != want.WeightsHash || optimizer != want.OptimizerHash {
			t.Fatalf("run %d (seed %d): weights %.12s, uninterrupted %.12s", n, seed, weights, want.WeightsHash)
		}
		got := readMetrics(t, dir)
		if len(got) != len(losses) {
			t.Fatalf("run %d: %d lines of metrics, want %d", n, len(got), len(losses))
		}
		for i := range got {
			if got[i]["step"] != losses[i]["step"] || got[i]["loss"] != losses[i]["loss"] {
				t.Fatalf("run %d: metrics line %d has step %v loss %v, want %v %v",
					n, i, got[i]["step"], got[i]["loss"], losses[i]["step"], losses[i]["loss"])
			}
		}
	}
}

// runChild runs the training process until it is killed, a delay after a path exists in its directory; it reports
// whether the run was completed before that.
func runChild(t *testing.T, dir, data, from, path string, delay time.Duration) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_RUN="+dir, "ANNEAL_TEST_DATA="+data, "ANNEAL_TEST_INIT="+from)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); path != "" && time.Since(begin) < time.Minute; time.Sleep(100 * time.Microsecond) {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			break
		}
	}
	timer := time.AfterFunc(delay, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		t.Fatalf("the child failed: %v\n%s", err, stderr.String())
	}
	return err == nil
}

func TestGuardStopsADivergedRun(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	// AdamW's first update moves every weight by lr, beyond what FP16 holds, whatever the kernels round. Decay at such
	// a rate is refused.
	cfg := with(t, data, "precision=fp16", "optimizer.lr=1e5", "optimizer.weight_decay=0", "train.clip=0",
		"schedule.warmup=1", "guard.max_skips=3")
	_, err := Run(context.Background(), Options{Config: cfg, Dir: dir})
	var diverged *DivergedError
	if !errors.As(err, &diverged) || diverged.Skips != 3 || diverged.NonFinite == 0 {
		t.Fatalf("error %v, want a DivergedError after 3 skips", err)
	}
	lines := readMetrics(t, dir)
	if last := lines[len(lines)-1]; last["skipped"] != true {
		t.Errorf("the last line of metrics does not say that the update was skipped: %v", last)
	}
}
