package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"anneal/internal/torture"
	"anneal/run"
)

// The rank comes from flags, else from MPI, Slurm, Kubernetes or torchrun; a launcher that sets only one of its
// variables is ignored.
func TestRankFromFlagsAndEnvironment(t *testing.T) {
	n := func(v int) *int { return &v }
	slurm, pods, torch := "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 ", "JOB_COMPLETION_INDEX=2 JOB_COMPLETIONS=5 ",
		"RANK=6 WORLD_SIZE=7 "
	mpi := "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 "
	for _, c := range []struct {
		name         string
		rank, ranks  *int
		env          string
		index, count int
		fault        string
	}{
		{"nothing", nil, nil, "", 0, 1, ""},
		{"ranks of one process", nil, n(4), "", 0, 1, ""},
		{"flags", n(2), n(3), mpi + slurm, 2, 3, ""},
		{"by itself", n(0), n(1), pods, 0, 1, ""},
		{"Open MPI", nil, nil, torch + pods + slurm + mpi, 5, 6, ""},
		{"MPICH", nil, nil, slurm + "PMI_RANK=0 PMI_SIZE=2", 0, 2, ""},
		{"srun", nil, nil, torch + pods + slurm, 1, 3, ""},
		{"Kubernetes", nil, nil, torch + pods, 2, 5, ""},
		{"torchrun", nil, nil, torch, 6, 7, ""},
		{"a variable of anybody", nil, nil, "RANK=3", 0, 1, ""},
		{"an indexed job of runs", nil, nil, "JOB_COMPLETION_INDEX=3", 0, 1, ""},
		{"batch script", nil, nil, "SLURM_PROCID=0 SLURM_NTASKS=8", 0, 1, ""},
		{"as many as the launcher", nil, n(3), slurm, 1, 3, ""},
		{"another number than the launcher", nil, n(4), slurm, 0, 0, "--ranks 4, but srun has started 3 processes"},
		{"rank alone", n(1), nil, "", 0, 0, "--rank 1 needs --ranks"},
		{"rank too large", n(3), n(3), "", 0, 0, "--rank 3 is not one of 3 ranks"},
		{"no number", nil, nil, "PMI_RANK=x PMI_SIZE=4", 0, 0, `PMI_RANK="x" and PMI_SIZE="4", which MPICH sets, do`},
		{"beyond the last", nil, nil, "PMI_RANK=4 PMI_SIZE=4", 0, 0, "which of several ranks"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, err := rankOf(c.rank, c.ranks, func(name string) string { return env[name] })
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "\n  ") {
				t.Errorf("%s: %+v, %v, want an error with %q", c.name, got, err, c.fault)
			}
		case err != nil || got.index != c.index || got.count != c.count:
			t.Errorf("%s: rank %d of %d, %v; want %d of %d", c.name, got.index, got.count, err, c.index, c.count)
		}
	}
}

// ranked are the arguments of a run on three ranks of one process.
func (w workshop) ranked(out string, more ...string) []string {
	return append([]string{"train", w.path("run.yaml"), "parallel.ranks=3", "threads=3", "train.micro_batch=1",
		"train.steps=40", "--out", out}, more...)
}

// readExit reads exit.json.
func readExit(t *testing.T, dir string) (e run.Exit) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "exit.json"))
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// whole trains without a fault and returns the result.
func (w workshop) whole() string {
	w.t.Helper()
	out := w.path("whole")
	w.object(exitOK, w.ranked(out)...)
	if e := readExit(w.t, out); e.Code != exitOK || e.Reason != "" || e.Saved != 40 {
		w.t.Errorf("a complete run says %+v", e)
	}
	return w.result(job{run: true}, out)
}

// A rank that panics or hangs ends the process with code 8 and one error; resumed on other ranks, the run ends with
// the same bits.
func TestALostRankExitsEight(t *testing.T) {
	w := newWorkshop(t)
	want := w.whole()
	for fault, says := range map[string]string{
		"rank:1:step:12:panic": "error: this is a defect in anneal: rank 1 (",
		"rank:2:step:12:hang":  "error: step 12: rank 2 (",
	} {
		out := w.path(fault)
		cmd := child(t, w.ranked(out, "parallel.timeout=0.02")...)
		cmd.Env = append(cmd.Env, run.FaultVariable+"="+fault)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitStalled {
			t.Fatalf("%s: %v\n%s", fault, err, text)
		}
		if !strings.Contains(string(text), says) || strings.Count(string(text), "error: ") != 1 ||
			!strings.Contains(string(text), "continue with `anneal resume "+out) {
			t.Errorf("%s: it says\n%s", fault, text)
		}
		if e := readExit(t, out); e.Code != exitStalled || !e.Resume || !strings.Contains(e.Reason, "rank ") {
			t.Errorf("%s: exit.json says %+v", fault, e)
		}
		w.object(exitOK, "resume", out, "parallel.ranks=2")
		if got := w.result(job{run: true}, out); got != want {
			t.Errorf("%s: it ends with other bits", fault)
		}
	}
}

// A mesh that loses a rank reports the rank's place in the mesh. Resumed on another mesh, the run ends with the bits
// of one rank, which none of these axes change.
func TestALostRankOfAMesh(t *testing.T) {
	w := newWorkshop(t)
	on := func(out string, keys ...string) []string {
		return append(w.ranked(out, "model.layers=2", "model.tie_embeddings=false", "threads=4"), keys...)
	}
	one := w.path("one")
	w.object(exitOK, on(one, "parallel.ranks=1")...)
	want := w.result(job{run: true}, one)
	for fault, code := range map[string]int{"hang": exitStalled, "panic": exitStalled, "kill": -1} {
		out := w.path(fault)
		cmd := child(t, on(out, "parallel.ranks=4", "parallel.pipeline=2", "parallel.timeout=0.02")...)
		cmd.Env = append(cmd.Env, run.FaultVariable+"=rank:3:step:12:"+fault)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != code {
			t.Fatalf("%s: %v\n%s", fault, err, text)
		}
		const place = "stage 1, data 1, context 0, tensor 0"
		if fault == "hang" && !strings.Contains(string(text), place) {
			t.Errorf("it does not say that the rank is %s:\n%s", place, text)
		}
		w.object(exitOK, "resume", out, "parallel.ranks=2", "parallel.schedule=gpipe")
		if got := w.result(job{run: true}, out); got != want {
			t.Errorf("%s: it ends with other bits", fault)
		}
	}
}

// After a kill at a random instant, any number of ranks can complete the run of a process with several ranks.
func TestKilledRanks(t *testing.T) { killRanks(t, 2) }

func TestManyKilledRanks(t *testing.T) {
	torture.Long(t)
	killRanks(t, 100)
}

func killRanks(t *testing.T, tries int) {
	w := newWorkshop(t)
	out := w.path("first")
	cmd := child(t, w.ranked(out)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	want := w.result(job{run: true}, out)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for kills := 0; kills < tries; {
		out, err := os.MkdirTemp(w.dir, "try")
		if err != nil {
			t.Fatal(err)
		}
		for _, ranks := range []string{"2", "3", "1", "2"} {
			args := w.ranked(out)
			if run.Exists(out) {
				args = []string{"resume", out, "parallel.ranks=" + ranks}
			}
			if !torture.Kill(t, r, child(t, args...), cpu) {
				break
			}
			kills++
		}
		if !run.Exists(out) {
			continue
		}
		w.object(exitOK, "resume", out, "parallel.ranks=2")
		if got := w.result(job{run: true}, out); got != want {
			t.Fatalf("after %d kills a run ends with other bits", kills)
		}
		os.RemoveAll(out)
	}
}

// On SIGTERM all ranks save and exit with 75; on SIGUSR1 they save and continue.
func TestSignalsReachAllRanks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	w := newWorkshop(t)
	want, out := w.whole(), w.path("signalled")
	cmd := child(t, w.ranked(out, "checkpoint.every=1000")...)
	cmd.Env = append(cmd.Env, run.FaultVariable+"=rank:2:step:12:slow")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(out, "ranks", "0000")); err == nil &&
			strings.Contains(string(text), `"step":12,"waits"`) {
			break
		}
	}
	cmd.Process.Signal(saveSignal)
	time.Sleep(200 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitStopped {
		t.Fatal(err)
	}
	if e := readExit(t, out); e.Code != exitStopped || !e.Resume || e.Saved < 12 || e.Saved >= 40 {
		t.Errorf("exit.json says %+v", e)
	}
	w.object(exitOK, "resume", out)
	if got := w.result(job{run: true}, out); got != want {
		t.Error("it ends with other bits")
	}
}

// A process started by a launcher needs MPI to find the others, and a resume may change only the ranks.
func TestLaunchesThatCannotBe(t *testing.T) {
	w := newWorkshop(t)
	t.Setenv("PMI_RANK", "0")
	t.Setenv("PMI_SIZE", "4")
	code, _, errs := anneal("train", w.path("run.yaml"), "--out", w.path("run"))
	if code != exitUsage || !strings.Contains(errs, "rank 0 of 4 (PMI_RANK=0 PMI_SIZE=4)") ||
		!strings.Contains(errs, "-tags mpi") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	t.Setenv("PMI_SIZE", "")
	t.Setenv("PMI_RANK", "")
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=2", "--out", w.path("run"))
	code, _, errs = anneal("resume", w.path("run"), "optimizer.lr=1")
	if code != exitUsage || !strings.Contains(errs, "optimizer.lr cannot change as a run is resumed") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// Numbers of ranks that contradict each other or this machine are one error, before any other output.
func TestRanksThatCannotBe(t *testing.T) {
	w := newWorkshop(t)
	config := w.path("run.yaml")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--dry-run", "--ranks", "0"}, "error: --ranks 0: a run has at least one rank"},
		{[]string{"--dry-run", "--ranks", "2", "parallel.ranks=1"}, "error: parallel.ranks=1, but --ranks 2"},
		{[]string{"parallel.ranks=99", "threads=2"}, "error: parallel.ranks = 99, but threads = 2, and each"},
	} {
		code, out, errs := anneal(append([]string{"train", config, "--out", w.path("run")}, c.args...)...)
		if code != exitUsage || out != "" || !strings.HasPrefix(errs, c.says) || !strings.Contains(errs, "\n  try ") {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
	w.object(exitOK, "train", config, "--dry-run", "--ranks", "2", "parallel.ranks=2")
}

// Under a launcher, a command that trains in one process is refused once, and a dry run prints one plan for all ranks.
func TestCommandsUnderALauncher(t *testing.T) {
	w := newWorkshop(t)
	t.Setenv("PMI_SIZE", "4")
	for rank, says := range []string{"this command trains in one process, but MPICH has started 4", ""} {
		t.Setenv("PMI_RANK", fmt.Sprint(rank))
		for _, args := range [][]string{
			{"lab", "ablate", w.path("run.yaml"), "--with", "optimizer.name=lion", "--out", w.path("compared")},
			{"demo", "--steps", "1", "--out", w.path("demo")},
			{"lr-find", w.path("run.yaml")},
		} {
			code, out, errs := anneal(args...)
			if code != exitUsage || (says == "") != (errs == "") || !strings.Contains(errs, says) {
				t.Errorf("%v on rank %d: exit %d\n%s%s", args, rank, code, out, errs)
			}
		}
		code, out, errs := anneal("train", w.path("run.yaml"), "--dry-run")
		if code != exitOK || (says == "") != (out == "") || says != "" && !strings.Contains(out, "# 4 ranks.") {
			t.Errorf("a dry run on rank %d: exit %d\n%s%s", rank, code, out, errs)
		}
	}
}
