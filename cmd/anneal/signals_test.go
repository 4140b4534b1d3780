//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stepsSaved waits until a run has n checkpoints.
func stepsSaved(t *testing.T, run string, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		saved, err := filepath.Glob(filepath.Join(run, "checkpoints", "step-*", "MANIFEST.json"))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d checkpoints, want %d, %v", len(saved), n, err)
		}
		if len(saved) >= n {
			return
		}
	}
}

// On SIGUSR1 a run saves a checkpoint and continues.
func TestSIGUSR1SavesAndGoesOn(t *testing.T) {
	w := newWorkshop(t)
	run, stderr := w.path("run"), tempFile(t)
	cmd := launch(t, nil, stderr, "train", w.path("run.yaml"), "train.steps=1000000",
		"checkpoint.every=0", "--out", run)
	underWay(t, cmd, run)
	for n := range 2 {
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		stepsSaved(t, run, n+1)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if code := ends(t, cmd); code != exitStopped {
		t.Errorf("exit %d, want %d", code, exitStopped)
	}
	if text, err := os.ReadFile(stderr.Name()); err != nil ||
		strings.Count(string(text), "a checkpoint is saved after this step") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
}

// Under nohup SIGHUP does nothing: it was ignored when the process began.
func TestSIGHUPIsIgnoredUnderNohup(t *testing.T) {
	w := newWorkshop(t)
	run := w.path("run")
	cmd := child(t, "train", w.path("run.yaml"), "train.steps=1000000", "checkpoint.every=0", "--out", run)
	cmd.Args, cmd.Path = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...),
		"/bin/sh"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	underWay(t, cmd, run)
	cmd.Process.Signal(syscall.SIGHUP)
	cmd.Process.Signal(syscall.SIGUSR1)
	stepsSaved(t, run, 1)
	cmd.Process.Signal(syscall.SIGTERM)
	if code := ends(t, cmd); code != exitStopped {
		t.Errorf("exit %d, want %d", code, exitStopped)
	}
}

// SIGQUIT ends a run with its stacks on standard error and in its directory, and with a unique exit code.
func TestSIGQUITLeavesTheStacks(t *testing.T) {
	w := newWorkshop(t)
	run, stderr := w.path("run"), tempFile(t)
	cmd := launch(t, nil, stderr, "train", w.path("run.yaml"), "train.steps=1000000", "--out", run)
	underWay(t, cmd, run)
	cmd.Process.Signal(syscall.SIGQUIT)
	if code := ends(t, cmd); code != exitQuit {
		t.Errorf("exit %d, want %d", code, exitQuit)
	}
	said, err := os.ReadFile(stderr.Name())
	if err != nil || !strings.Contains(string(said), "SIGQUIT") || !strings.Contains(string(said), "goroutine 1 [") {
		t.Errorf("%v\n%s", err, said)
	}
	files, _ := filepath.Glob(filepath.Join(run, "crash", "quit-*.txt"))
	if len(files) != 1 || !strings.Contains(string(said), files[0]) {
		t.Errorf("the run has %v\n%s", files, said)
	}
}

// A panic is reported as a defect, with the exit code of defects; a crash that cannot be caught ends in SIGABRT.
// Neither has the exit code of a wrong command line.
func TestCrashesHaveCodesOfTheirOwn(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=1", "--out", w.path("run"))
	s := &session{}
	s.run.Store(w.path("run"))
	err := s.guarded(func() error { var list []int; return os.NewSyscallError("x", syscall.Errno(list[2])) })
	if code := exitCode(err); code != exitInternal ||
		!strings.Contains(err.Error(), "a defect in anneal: runtime error: index out of range") {
		t.Errorf("a panic: exit %d, %v", code, err)
	}
	files, _ := filepath.Glob(filepath.Join(w.path("run"), "crash", "panic-*.txt"))
	if len(files) != 1 || !strings.Contains(err.Error(), files[0]) {
		t.Fatalf("the run has %v; %v", files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "signals_test.go") {
		t.Errorf("%v\n%s", err, text)
	}
	w.object(exitOK, "ckpt", "verify", w.path("run"))
	cmd := child(t)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=crash")
	out, _ := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGABRT ||
		!strings.Contains(string(out), "panic: outside of the command") {
		t.Errorf("%v\n%s", cmd.ProcessState, out)
	}
}
