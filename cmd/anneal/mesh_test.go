package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"anneal/internal/torture"
	"anneal/run"
)

// meshes are ways to share a run among four ranks.
var meshes = [][]string{
	{"parallel.tensor=2", "parallel.pipeline=2"},
	{"parallel.context=2", "parallel.pipeline=2", "parallel.schedule=zb-h1", "parallel.zero=1", "parallel.sum_block=4"},
	{"parallel.tensor=2", "parallel.ranks=4", "parallel.zero=3"},
	{"parallel.context=2", "parallel.ranks=4", "parallel.zero=2", "parallel.attention=ulysses"},
}

// meshed are the arguments of a run on a mesh of four ranks of one process.
func (w workshop) meshed(mesh []string, out string, more ...string) []string {
	return slices.Concat([]string{"train", w.path("run.yaml"), "model.layers=2", "threads=4", "train.micro_batch=1",
		"train.steps=40", "--out", out}, mesh, more)
}

// ofMesh returns the result and the CPU time of an undisturbed run on a mesh.
func (w workshop) ofMesh(mesh []string) whole {
	w.t.Helper()
	out := w.path(strings.Join(mesh, " "))
	cmd := child(w.t, w.meshed(mesh, out)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %v\n%s", mesh, err, text)
	}
	return whole{w.result(job{run: true}, out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), 0}
}

// If the process of a mesh is killed at any instant, or a rank hangs or panics at any step, the resumed run ends with
// the bits of an undisturbed one. One line names the rank that hangs or panics, and the exit code is 8.
func TestTortureMeshes(t *testing.T) {
	w := newWorkshop(t)
	done := make([]whole, len(meshes))
	torture.Run(t, 3, func(r *rand.Rand) (fault, outcome string) {
		k := r.IntN(len(meshes))
		if done[k].result == "" {
			done[k] = w.ofMesh(meshes[k])
		}
		out, err := os.MkdirTemp(w.dir, "try")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(out)
		train := w.meshed(meshes[k], out, "parallel.timeout=0.05")
		fault, outcome = "kill -9 of the process of a mesh", "resumed, with the same bits at the end"
		if what := []string{"kill", "hang", "panic"}[r.IntN(3)]; what != "kill" {
			fault = "a " + what + " of a rank of a mesh"
			loseRank(t, r.IntN(4), 1+r.IntN(40), what, train)
		} else if !torture.Kill(t, r, child(t, train...), done[k].cpu) {
			outcome = "it ended before it was killed"
		} else if !run.Exists(out) {
			return fault, "no run yet"
		}
		w.object(exitOK, "resume", out)
		if got := w.result(job{run: true}, out); got != done[k].result {
			t.Fatalf("%v: after %s it ends with other bits", meshes[k], fault)
		}
		return fault, outcome
	})
}

// loseRank runs a command in which a rank hangs or panics at the beginning of a step.
func loseRank(t *testing.T, rank, step int, what string, args []string) {
	t.Helper()
	cmd := child(t, args...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=rank:%d:step:%d:%s", run.FaultVariable, rank, step, what))
	begun := time.Now()
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitStalled {
		t.Fatalf("%v: a %s of rank %d in step %d: %v\n%s", args, what, rank, step, err, text)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("%v: a %s of rank %d in step %d ends the run after %v", args, what, rank, step, took)
	}
	says := fmt.Sprintf("rank %d (", rank)
	if what == "hang" {
		says = fmt.Sprintf("error: step %d: rank %d (", step, rank)
	}
	if !strings.Contains(string(text), says) || strings.Count(string(text), "error: ") != 1 {
		t.Errorf("%v: a %s of rank %d in step %d: it says\n%s", args, what, rank, step, text)
	}
}

// On SIGTERM all ranks of a mesh save and exit with 75; on SIGUSR1 they save and continue. The run then ends with the
// bits of a run without signals.
func TestSignalsReachAMesh(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	w := newWorkshop(t)
	for i, mesh := range meshes[:2] {
		want, out := w.ofMesh(mesh), w.path(fmt.Sprint("signalled", i))
		cmd := child(t, w.meshed(mesh, out, "checkpoint.every=1000")...)
		cmd.Env = append(cmd.Env, run.FaultVariable+"=rank:3:step:12:slow")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.waitForStep(out, 12)
		cmd.Process.Signal(saveSignal)
		time.Sleep(200 * time.Millisecond)
		cmd.Process.Signal(syscall.SIGTERM)
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitStopped {
			t.Fatalf("%v: %v, want exit code 75", mesh, err)
		}
		if e := readExit(t, out); e.Code != exitStopped || !e.Resume || e.Saved < 12 || e.Saved >= 40 {
			t.Errorf("%v: exit.json says %+v", mesh, e)
		}
		w.object(exitOK, "resume", out)
		if got := w.result(job{run: true}, out); got != want.result {
			t.Errorf("%v: it ends with other bits", mesh)
		}
	}
}

// waitForStep waits until rank 0 of a run is in a step.
func (w workshop) waitForStep(out string, step int) {
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(out, "ranks", "0000"))
		if err == nil && bytes.Contains(text, fmt.Appendf(nil, `"step":%d,`, step)) {
			return
		}
	}
	w.t.Fatalf("after a minute rank 0 is not in step %d", step)
}

// Commands that read, merge, average, export and branch runs treat a run of a mesh like any other.
func TestCommandsOnARunOfAMesh(t *testing.T) {
	w := newWorkshop(t)
	out := w.path("run")
	w.object(exitOK, w.meshed(meshes[0], out, "train.steps=12", "train.eval_every=4", "checkpoint.every=4")...)
	hash := w.object(exitOK, "ckpt", "hash", out)["weights_hash"]
	w.object(exitOK, "ckpt", "verify", out)
	w.object(exitOK, "ckpt", "average", out, "--last", "2", "--out", w.path("average"))
	w.object(exitOK, "export", out, w.path("hf"))
	w.object(exitOK, "import", w.path("hf"), "--out", w.path("imported"))
	w.object(exitOK, "branch", out, "--at", "8", "train.steps=12", "--out", w.path("branch"))
	if got := w.object(exitOK, "ckpt", "hash", w.path("branch"))["weights_hash"]; got != hash {
		t.Errorf("a branch without changes ends with weights %v, want %v", got, hash)
	}
	eval := func(run string) any {
		return w.object(exitOK, "eval", run, "--data", w.path("data"))["loss"]
	}
	want := eval(out)
	w.object(exitOK, "generate", out, "--prompt", "func", "--max-tokens", "4")
	w.object(exitOK, "rewind", out, "--to", "8")
	w.object(exitOK, "resume", out)
	if got := w.object(exitOK, "ckpt", "hash", out)["weights_hash"]; got != hash {
		t.Errorf("after a rewind it ends with weights %v, want %v", got, hash)
	}
	w.object(exitOK, "ckpt", "merge", out)
	if got := w.object(exitOK, "ckpt", "hash", out)["weights_hash"]; got != hash {
		t.Errorf("merged, the run has weights %v, want %v", got, hash)
	}
	if got := eval(out); want == nil || got != want {
		t.Errorf("merged, the run has loss %v, want %v", got, want)
	}
}

// A dry run either accepts a random mesh, which then trains, or refuses it with the fault and a remedy, before
// anything is written.
func TestTortureMeshesThatCannotBe(t *testing.T) {
	w := newWorkshop(t)
	torture.Run(t, 12, func(r *rand.Rand) (fault, outcome string) {
		one := func(key, works, fails string) string {
			values := strings.Split(works, " ")
			if r.IntN(12) == 0 {
				values = strings.Split(fails, " ")
			}
			return "parallel." + key + "=" + values[r.IntN(len(values))]
		}
		keys := []string{
			fmt.Sprint("model.layers=", 2+r.IntN(3)), fmt.Sprint("train.micro_batch=", 1+r.IntN(2)), "train.steps=2",
			one("tensor", "1 2", "3 0"), one("context", "1 2", "5 -1"), one("pipeline", "1 2", "3 9"),
			one("schedule", "1f1b gpipe zb-h1", "interleaved:2 interleaved:1 interleaved: 2f2b"),
			one("attention", "ring ulysses", "flash"), one("zero", "0 1 2 3", "4"),
		}
		if r.IntN(3) == 0 {
			keys = append(keys, one("ranks", "4 8", "1 2 7 0"))
		}
		out := w.path(fmt.Sprint("mesh", r.Uint64()))
		args := slices.Concat([]string{"train", w.path("run.yaml"), "threads=64", "--out", out}, keys)
		code, _, errs := anneal(append(args, "--dry-run")...)
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%v: a dry run has written something", keys)
		}
		switch code {
		case exitOK:
			if code, _, errs := anneal(args...); code != exitOK {
				t.Fatalf("%v: a dry run accepts it, training ends with %d\n%s", keys, code, errs)
			}
			os.RemoveAll(out)
			return "a mesh drawn at random", "trained"
		case exitUsage:
			if !strings.HasPrefix(errs, "error: ") || !strings.Contains(errs, "\n  try ") {
				t.Fatalf("%v: it says\n%s", keys, errs)
			}
			if code, _, _ := anneal(args...); code != exitUsage {
				t.Fatalf("%v: a dry run refuses it, training ends with %d", keys, code)
			}
			if _, err := os.Stat(out); err == nil {
				t.Fatalf("%v: what was refused has written something", keys)
			}
			return "a mesh drawn at random", "refused, with what to try"
		}
		t.Fatalf("%v: exit %d\n%s", keys, code, errs)
		return
	})
}
