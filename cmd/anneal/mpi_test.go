//go:build mpi && linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"anneal/internal/torture"
	"anneal/run"
)

// mpirun returns the command that launches anneal, which is this test binary, on n ranks.
func mpirun(t *testing.T, launcher string, n string, args ...string) *exec.Cmd {
	t.Helper()
	version, err := exec.Command(launcher, "--version").CombinedOutput()
	if err != nil {
		t.Skipf("no %s here", launcher)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-n", n}
	if bytes.Contains(version, []byte("Open")) {
		flags = append(flags, "--oversubscribe", "--bind-to", "none")
	}
	cmd := exec.CommandContext(t.Context(), launcher, append(append(flags, exe), args...)...)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1", "OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

// Processes under MPI make the same run as one process. If one is killed, panics or hangs, all end; the run, resumed
// with any number of processes, ends with the same bits. A mistake is reported once.
func TestRanksUnderMPI(t *testing.T) {
	for _, launcher := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		t.Run(launcher, func(t *testing.T) { ranksUnderMPI(t, launcher) })
	}
}

// Processes of a mesh end with the bits that goroutines on the same mesh end with.
func TestMeshesUnderMPI(t *testing.T) {
	w := newWorkshop(t)
	for i, mesh := range [][]string{
		{"parallel.tensor=2", "parallel.pipeline=2"},
		{"parallel.context=2", "parallel.pipeline=2", "parallel.schedule=gpipe", "parallel.zero=3"},
	} {
		args := append([]string{"train", w.path("run.yaml"), "train.micro_batch=1", "train.steps=10",
			"model.layers=2"}, mesh...)
		here := w.path(fmt.Sprint("local", i))
		if code, _, errs := anneal(append(args, "threads=4", "--out", here)...); code != exitOK {
			t.Fatalf("%v: exit %d\n%s", mesh, code, errs)
		}
		want := w.result(job{run: true}, here)
		for _, launcher := range []string{"mpirun.openmpi", "mpirun.mpich"} {
			out := w.path(fmt.Sprint(launcher, i))
			cmd := mpirun(t, launcher, "4", append(args, "threads=1", "--out", out)...)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s, %v: %v\n%s", launcher, mesh, err, text)
			}
			if got := w.result(job{run: true}, out); got != want {
				t.Errorf("%s, %v: it ends with other bits", launcher, mesh)
			}
		}
	}
}

// A budget under MPI is measured on all processes. One table is derived, which all use, and a mistake is reported
// once.
func TestBudgetUnderMPI(t *testing.T) {
	w := newWorkshop(t)
	args := []string{"train", "data.path=" + w.path("data"), "model.dim=64", "model.layers=1", "threads=1"}
	for _, launcher := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		t.Run(launcher, func(t *testing.T) {
			out := w.path(launcher)
			run := mpirun(t, launcher, "2", append(args, "--budget", "3s", "--out", out, "--json")...)
			text, err := run.Output()
			var v map[string]any
			if err != nil || json.Unmarshal(text, &v) != nil {
				t.Fatalf("%v: %s", err, text)
			}
			kept, err := os.ReadFile(filepath.Join(out, "config.yaml"))
			if err != nil || !bytes.Contains(kept, []byte("measured on all processes")) &&
				!bytes.Contains(kept, []byte("follows the clock")) {
				t.Errorf("config.yaml does not say where the speed is from: %v\n%s", err, kept)
			}
			text, err = mpirun(t, launcher, "2", append(args, "--budget", "3s", "--dry-run", "--json")...).Output()
			if err != nil || json.Unmarshal(text, &v) != nil {
				t.Fatalf("%v: more or less than one table: %s", err, text)
			}
			w.derives(v, 2)
			text, err = mpirun(t, launcher, "2", append(args, "--budget", "1ms", "--dry-run")...).CombinedOutput()
			if err == nil || strings.Count(string(text), "too small for one step") != 1 {
				t.Errorf("a budget for no step: %v\n%s", err, text)
			}
		})
	}
}

func ranksUnderMPI(t *testing.T, launcher string) {
	w := newWorkshop(t)
	want := w.whole()
	args := func(out string, more ...string) []string {
		return append([]string{"train", w.path("run.yaml"), "threads=1", "train.micro_batch=1", "train.steps=40",
			"--out", out}, more...)
	}
	killed := "" // MPICH's launcher kills the others at once, Open MPI's leaves them a second
	if launcher == "mpirun.openmpi" {
		killed = "error: step 12: rank 1 on "
	}
	for fault, says := range map[string]string{
		"":                     "",
		"rank:1:step:12:panic": "error: this is a defect in anneal: rank 1 (",
		"rank:2:step:12:hang":  "error: step 12: rank 2 (",
		"rank:1:step:12:kill":  killed,
	} {
		out := w.path("run" + fault)
		cmd := mpirun(t, launcher, "3", args(out, "parallel.timeout=0.02", "parallel.zero=1")...)
		cmd.Env = append(cmd.Env, run.FaultVariable+"="+fault)
		text, err := cmd.CombinedOutput()
		if (err == nil) != (fault == "") || !strings.Contains(string(text), says) ||
			strings.Count(string(text), "error: ") > 1 {
			t.Errorf("%q: %v\n%s", fault, err, text)
		}
		if says != "" {
			if e := readExit(t, out); e.Code != exitStalled || !e.Resume {
				t.Errorf("%q: exit.json says %+v", fault, e)
			}
		}
		if fault != "" {
			text, err := mpirun(t, launcher, "2", "resume", out, "parallel.zero=3").CombinedOutput()
			if err != nil {
				t.Fatalf("%q, resumed: %v\n%s", fault, err, text)
			}
		}
		if got := w.result(job{run: true}, out); got != want {
			t.Errorf("%q: it ends with other bits", fault)
		}
	}
	text, err := mpirun(t, launcher, "2", args(w.path("run"))...).CombinedOutput()
	if err == nil || strings.Count(string(text), "already holds a run") != 1 {
		t.Errorf("a second run: %v\n%s", err, text)
	}
}

// An error of one process ends all processes with its exit code. An error about the ranks, such as different configs,
// ends them with 8.
func TestCodesUnderMPI(t *testing.T) {
	w := newWorkshop(t)
	for _, launcher := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		for i, c := range []struct {
			other, says string
			code        int
		}{
			{"optimizer.lr=0.5", "rank 1 (", exitStalled},
			{"data.path=/nowhere", "error: rank 1 (", exitData},
		} {
			out := w.path(fmt.Sprint(launcher, i))
			args := []string{"train", w.path("run.yaml"), "threads=1", "train.micro_batch=1", "--out", out}
			cmd := mpirun(t, launcher, "1", args...)
			exe, _ := os.Executable()
			cmd.Args = slices.Concat(cmd.Args, []string{":", "-n", "1", exe}, args, []string{c.other})
			text, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Errorf("%s, %s: %v, want code %d", launcher, c.other, err, c.code)
			}
			if strings.Count(string(text), "error: ") != 1 || !strings.Contains(string(text), c.says) ||
				run.Exists(out) {
				t.Errorf("%s, %s: it says\n%s", launcher, c.other, text)
			}
		}
	}
}

// If ranks are killed or stopped at random instants, other ranks complete the run with the same bits.
func TestKilledRanksUnderMPI(t *testing.T) { killUnderMPI(t, 2) }

func TestManyKilledRanksUnderMPI(t *testing.T) {
	torture.Long(t)
	killUnderMPI(t, 100)
}

func killUnderMPI(t *testing.T, tries int) {
	w := newWorkshop(t)
	want := w.whole()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for kills := 0; kills < tries; {
		launcher := []string{"mpirun.openmpi", "mpirun.mpich"}[r.IntN(2)]
		out, err := os.MkdirTemp(w.dir, "try")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			args := w.ranked(out, "threads=1", "parallel.timeout=0.02", "checkpoint.every=3")
			if run.Exists(out) {
				args = []string{"resume", out, "parallel.zero=" + fmt.Sprint(r.IntN(4))}
			}
			n := 2 + r.IntN(2)
			if args[0] == "train" {
				n = 3
			}
			if !killRank(t, r, mpirun(t, launcher, fmt.Sprint(n), args...), out, n) {
				break
			}
			kills++
		}
		if !run.Exists(out) {
			continue
		}
		w.object(exitOK, "resume", out, "parallel.ranks=2", "--threads", "2")
		if got := w.result(job{run: true}, out); got != want {
			t.Fatalf("after %d kills a run ends with other bits", kills)
		}
		os.RemoveAll(out)
	}
}

// runs reports whether a process belongs to a run. The file of a rank may be left from an earlier process, and its PID
// may since belong to another program.
func runs(pid int, out string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && pid > 0 && bytes.Contains(line, []byte(out))
}

// killRank starts a run on n ranks and kills or stops one of them at a random instant. The file of a rank in ranks/
// has its PID. killRank reports whether this ended the run.
func killRank(t *testing.T, r *rand.Rand, cmd *exec.Cmd, out string, n int) bool {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	instant := time.After(time.Duration(r.Float64() * float64(800*time.Millisecond)))
	rank := r.IntN(n)
	for {
		select {
		case err := <-ended:
			return err != nil
		case <-instant:
		}
		var at struct{ PID int }
		text, err := os.ReadFile(filepath.Join(out, "ranks", fmt.Sprintf("%04d", rank)))
		if err == nil && json.Unmarshal(text, &at) == nil && runs(at.PID, out) {
			signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[r.IntN(2)]
			syscall.Kill(at.PID, signal)
			begun := time.Now()
			select {
			case err := <-ended:
				if runs(at.PID, out) { // a stopped process may outlive its launcher
					syscall.Kill(at.PID, syscall.SIGKILL)
				}
				return err != nil
			case <-time.After(20 * time.Second):
				t.Fatalf("%v after %v to rank %d of %d the run has not ended", time.Since(begun), signal, rank, n)
			}
		}
		instant = time.After(5 * time.Millisecond)
	}
}
