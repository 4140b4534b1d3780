//go:build mpi && linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"anneal/run"
)

// mpirun is a launch of anneal, which is this test binary, on n ranks.
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

// Processes under MPI make the run of one process. If one of them is killed, panics or hangs, all end, and the run goes
// on with any number of them to the same bits. A mistake is told once.
func TestRanksUnderMPI(t *testing.T) {
	for _, launcher := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		t.Run(launcher, func(t *testing.T) { ranksUnderMPI(t, launcher) })
	}
}

func ranksUnderMPI(t *testing.T, launcher string) {
	w := newWorkshop(t)
	want := w.whole()
	args := func(out string, more ...string) []string {
		return append([]string{"train", w.path("run.yaml"), "threads=1", "train.micro_batch=1", "train.steps=40",
			"--out", out}, more...)
	}
	for fault, says := range map[string]string{
		"":                     "",
		"rank:1:step:12:panic": "error: this is a defect in anneal: rank 1: panic: ANNEAL_FAULT",
		"rank:2:step:12:hang":  "error: step 12: rank 2 (",
		"rank:1:step:12:kill":  "",
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
