//go:build unix

package checkpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anneal/internal/torture"
)

// The test binary runs itself as the process that is killed.
func TestMain(m *testing.M) {
	root := os.Getenv("CHECKPOINT_TEST_DIR")
	var err error
	switch os.Getenv("CHECKPOINT_TEST_CHILD") {
	case "saver":
		err = saveUntilKilled(root)
	case "leader":
		err = leadUntilKilled(root)
	case "follower":
		err = followUntilKilled(root)
	case "limited":
		err = limited(root)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(kind, root string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_CHILD="+kind, "CHECKPOINT_TEST_DIR="+root)
	return cmd
}

const childBytes = 1<<20 + 12

// saveUntilKilled resumes from the newest checkpoint and saves one step after another until it is killed. It prints a
// step when it knows that it is committed: when the next save, which waits for it, has returned. Every fourth is
// saved by two writers.
func saveUntilKilled(root string) error {
	s, err := Open(root, Options{Keep: 2, Log: quiet})
	if err != nil {
		return err
	}
	tensors, state := blank(childBytes), runState{}
	info, err := s.LoadLatest(tensors, &state)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	if len(info.Skipped) > 0 {
		return fmt.Errorf("resumed at step %d past %v", info.Step, info.Skipped)
	}
	if err == nil {
		if d := differs(tensors, state, info.Step, childBytes); d != "" {
			return fmt.Errorf("resumed at step %d: %s", info.Step, d)
		}
	}
	for step := info.Step + 1; ; step++ {
		s.Copied()
		for i := range tensors {
			fillAt(tensors[i].Data, step, i)
		}
		_, state := stateAt(step, 8)
		if step%4 == 0 {
			err = errors.Join(s.Wait(), save(s, 2, step, tensors, state))
		} else {
			err = s.Save(step, step*10, tensors, state)
		}
		if err != nil {
			return err
		}
		if step > info.Step+1 {
			fmt.Println(step - 1)
		}
	}
}

// SIGKILL at random instants of a process that saves all the time: every time the newest checkpoint verifies, is one
// that was saved, and is not older than what the process knew to be committed. A kill follows the start of the process
// or one of its first saves by up to the time of two saves.
func TestTortureKilledSaves(t *testing.T) {
	root := t.TempDir()
	newest, rounds := int64(0), 0
	named := false               // the last process has named itself in the lock
	save := 2 * time.Millisecond // what the last one took
	torture.Run(t, 20, func(r *rand.Rand) (fault, outcome string) {
		rounds++
		cmd := child("saver", root)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		seen, until, before := 0, r.IntN(4), time.Now()
		kill := func() {
			time.AfterFunc(time.Duration(r.Int64N(int64(2*save))), func() { cmd.Process.Kill() })
		}
		if until == 0 {
			kill()
		}
		committed := int64(0)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err == io.EOF {
				break // a torn last line is no promise
			}
			if err != nil {
				t.Fatal(err)
			}
			if committed, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64); err != nil {
				t.Fatal(err)
			}
			if seen++; seen > 1 {
				save = time.Since(before)
			}
			before = time.Now()
			if seen == until {
				kill()
			}
		}
		named = seen > 0
		err = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
			t.Fatalf("the saver ended by itself: %v: %s", err, stderr.String())
		}
		fault, outcome = "kill -9 while checkpoints are saved", "the newest one is whole"
		tensors, state := blank(childBytes), runState{}
		info, err := LoadLatest(root, tensors, &state)
		if errors.Is(err, ErrNone) && newest == 0 && committed == 0 {
			return fault, "no checkpoint yet"
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := differs(tensors, state, info.Step, childBytes); d != "" {
			t.Fatalf("step %d: %s", info.Step, d)
		}
		if info.Step < max(newest, committed) || len(info.Skipped) > 0 {
			t.Fatalf("step %d is the newest, but step %d was committed; skipped: %v",
				info.Step, max(newest, committed), info.Skipped)
		}
		newest = info.Step
		return fault, outcome
	})
	if newest < int64(rounds)/2 {
		t.Errorf("only %d steps in %d rounds", newest, rounds)
	}
	var log journal
	s := mustOpen(t, root, Options{Log: log.logger()})
	if named && !strings.Contains(log.String(), "taking over the lock") {
		t.Errorf("the dead process's lock was not reported: %s", log.String())
	}
	for _, name := range names(t, root) {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s is left after the next start", name)
		}
	}
	mustSave(t, s, childBytes, newest+1)
	wantLatest(t, root, newest+1, childBytes)
}

// limited saves under a limit on file sizes, so that the kernel itself breaks off a write in the middle.
func limited(root string) error {
	signal.Ignore(unix.SIGXFSZ)
	s, err := Open(root, Options{Log: quiet})
	if err != nil {
		return err
	}
	tensors, state := stateAt(1, 64<<10)
	if err := errors.Join(s.Save(1, 10, tensors, state), s.Wait()); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1<<20 + 777, Max: 1<<20 + 777}); err != nil {
		return err
	}
	tensors, state = stateAt(2, 2<<20)
	err = errors.Join(s.Save(2, 20, tensors, state), s.Wait())
	if !errors.Is(err, unix.EFBIG) || !strings.Contains(err.Error(), modelFile) {
		return fmt.Errorf("the save past the limit gave: %v", err)
	}
	return s.Close()
}

func TestShortWriteByTheKernel(t *testing.T) {
	root := t.TempDir()
	if out, err := child("limited", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantLatest(t, root, 1, 64<<10)
	if got := names(t, root); len(got) != 2 {
		t.Errorf("the directory holds %v, want one checkpoint and latest", got)
	}
}
