//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stalled returns both ends of a full pipe from which nobody reads.
func stalled(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); writer.Close() })
	writer.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for block := make([]byte, 1<<10); ; {
		if _, err := writer.Write(block); err != nil {
			writer.SetWriteDeadline(time.Time{})
			return reader, writer
		}
	}
}

// launch starts the command in a process of its own.
func launch(t *testing.T, stdout, stderr *os.File, args ...string) *exec.Cmd {
	t.Helper()
	cmd := child(t, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// ends waits for a process and returns its exit code.
func ends(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// underWay waits until a run has finished a step.
func underWay(t *testing.T, cmd *exec.Cmd, run string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if s, err := os.Stat(filepath.Join(run, "metrics.jsonl")); err == nil && s.Size() > 0 {
			return
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatal("no step within 30 s")
		}
	}
}

func tempFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A reader of standard error that stalls or has closed does not delay a run, and the results arrive complete.
func TestReadersOfProgressDoNotHoldTraining(t *testing.T) {
	w := newWorkshop(t)
	for _, c := range []struct{ name, notes string }{{"stalls", ""},
		{"is gone", "standard error cannot be written: write |1: broken pipe"}} {
		reader, stderr := stalled(t)
		if c.notes != "" {
			reader.Close()
		}
		stdout, run := tempFile(t), w.path(c.name)
		code := ends(t, launch(t, stdout, stderr, "train", w.path("run.yaml"), "train.steps=40", "train.log_every=1",
			"--json", "--out", run))
		text, err := os.ReadFile(stdout.Name())
		if err != nil {
			t.Fatal(err)
		}
		var result struct{ Steps int }
		if err := json.Unmarshal(text, &result); err != nil || code != exitOK || result.Steps != 40 {
			t.Errorf("a reader that %s: exit %d, %v in %q", c.name, code, err, text)
		}
		journal, err := os.ReadFile(filepath.Join(run, "journal.jsonl"))
		if err != nil || c.notes != "" && strings.Count(string(journal), "standard error cannot be written: ") != 1 {
			t.Errorf("a reader that %s: %v, the journal holds\n%s", c.name, err, journal)
		}
	}
}

// Signals work although the reader of standard error stalls: the first one saves, the second ends the process even if
// something is stuck.
func TestSignalsReachARunWhoseReaderStalls(t *testing.T) {
	w := newWorkshop(t)
	_, stderr := stalled(t)
	run := w.path("run")
	cmd := launch(t, nil, stderr, "train", w.path("run.yaml"), "train.steps=1000000",
		"checkpoint.every=0", "--out", run)
	underWay(t, cmd, run)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := ends(t, cmd); code != exitStopped {
		t.Errorf("after SIGTERM the run exits with %d", code)
	}
	if saved, err := filepath.Glob(filepath.Join(run, "checkpoints", "step-*")); err != nil || len(saved) != 1 {
		t.Errorf("after SIGTERM the run has the checkpoints %v, %v", saved, err)
	}
	_, stdout := stalled(t) // on which the results block at the end
	cmd = launch(t, stdout, stderr, "resume", run)
	time.Sleep(time.Second)
	for range 2 {
		cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(500 * time.Millisecond)
	}
	start := time.Now()
	if code := ends(t, cmd); code != exitTerminate || time.Since(start) > resultsPatience/2 {
		t.Errorf("after a second SIGTERM the process exits with %d after %v", code, time.Since(start))
	}
}

// A closing terminal may send SIGHUP more than once; the run is still saved.
func TestHangingUpTwiceSavesTheRun(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as under nohup")
	}
	w := newWorkshop(t)
	run := w.path("run")
	cmd := launch(t, nil, nil, "train", w.path("run.yaml"), "train.steps=1000000", "--out", run)
	underWay(t, cmd, run)
	for range 3 {
		cmd.Process.Signal(syscall.SIGHUP)
	}
	if code := ends(t, cmd); code != exitStopped {
		t.Errorf("after SIGHUP the run exits with %d", code)
	}
}

// A slow reader is told how many lines it missed.
func TestASlowReaderIsToldWhatItMissed(t *testing.T) {
	reader, stderr := stalled(t)
	c := newConsole(stderr)
	for range consolePieces + 11 {
		c.Write([]byte("\r8 of 9\x1b[K"))
		c.Write([]byte("step\n"))
	}
	var got bytes.Buffer
	done := make(chan struct{})
	go func() { got.ReadFrom(reader); close(done) }()
	c.Close(time.Minute)
	stderr.Close()
	<-done
	if text := got.String(); strings.Count(text, " lines of progress were dropped: the reader is slow\n") != 1 {
		t.Errorf("the reader got %d bytes, at the end %q", len(text), text[max(0, len(text)-200):])
	}
	if notes := c.takeNotes(); len(notes) != 1 {
		t.Errorf("the journal would hold %q", notes)
	}
}

// A run whose results nobody reads is a run that ended well.
func TestARunEndsWellWithoutAReader(t *testing.T) {
	w := newWorkshop(t)
	for _, json := range []string{"--json", "--quiet"} {
		reader, stdout := stalled(t)
		reader.Close()
		stderr, run := tempFile(t), w.path("run"+json)
		code := ends(t, launch(t, stdout, stderr, "train", json, w.path("run.yaml"), "--out", run))
		exit, err := os.ReadFile(filepath.Join(run, "exit.json"))
		if code != exitPipe || err != nil || !strings.Contains(string(exit), `"code":0`) {
			text, _ := os.ReadFile(stderr.Name())
			t.Errorf("%s: exit %d, %s (%v)\n%s", json, code, exit, err, text)
		}
	}
}

// A reader that closes before all results are read ends a command that only prints, without a message.
func TestCommandsThatOnlyPrintEndWithTheirReader(t *testing.T) {
	for _, command := range []string{"explain", "version", "attention show full --svg -"} {
		reader, stdout := stalled(t)
		reader.Close()
		stderr := tempFile(t)
		code := ends(t, launch(t, stdout, stderr, strings.Fields(command)...))
		if text, err := os.ReadFile(stderr.Name()); err != nil || code != exitPipe ||
			strings.Contains(string(text), "error") {
			t.Errorf("anneal %s: exit %d, %v\n%s", command, code, err, text)
		}
	}
}
