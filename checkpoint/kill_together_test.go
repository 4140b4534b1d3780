//go:build unix

package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"anneal/internal/torture"
)

const killedRanks = 3

// leadUntilKilled is rank 0 of processes that save together, one step after another. It tells the directory and the
// step, writes its part, and commits when it is told that the others have written theirs.
func leadUntilKilled(root string) error {
	s, err := Open(root, Options{Keep: 2, Log: quiet, Together: true})
	if err != nil {
		return err
	}
	w := Writer{Root: root}
	info, err := s.LoadLatest(share(blank(childBytes), 0, killedRanks), nil)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	if len(info.Skipped) > 0 {
		return fmt.Errorf("resumed at step %d past %v", info.Step, info.Skipped)
	}
	in := bufio.NewReader(os.Stdin)
	for step := info.Step + 1; ; step++ {
		tensors, state := stateAt(step, childBytes)
		dir, err := s.Begin(step, step*10, state)
		if err != nil {
			return err
		}
		fmt.Println(dir, step)
		if err := errors.Join(w.Write(dir, share(tensors, 0, killedRanks)), w.Wait()); err != nil {
			return err
		}
		if _, err := in.ReadString('\n'); err != nil {
			return err
		}
		if err := errors.Join(s.Commit(killedRanks), s.Wait()); err != nil {
			return err
		}
		fmt.Println("committed", step)
	}
}

// followUntilKilled is another rank: it writes its part of every step that it is told.
func followUntilKilled(root string) error {
	number, err := strconv.Atoi(os.Getenv("CHECKPOINT_TEST_RANK"))
	if err != nil {
		return err
	}
	w := Writer{Root: root, Number: number}
	for in := bufio.NewReader(os.Stdin); ; {
		var dir string
		var step int64
		if _, err := fmt.Fscanln(in, &dir, &step); err != nil {
			return err
		}
		tensors, _ := stateAt(step, childBytes)
		if err := errors.Join(w.Write(dir, share(tensors, number, killedRanks)), w.Wait()); err != nil {
			return err
		}
		fmt.Println("written")
	}
}

// rankProcess is one of the processes, seen by the test that relays what they say.
type rankProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

func startRank(t *testing.T, root string, number int) *rankProcess {
	t.Helper()
	kind := "follower"
	if number == 0 {
		kind = "leader"
	}
	p := &rankProcess{cmd: child(kind, root)}
	p.cmd.Env = append(p.cmd.Env, fmt.Sprint("CHECKPOINT_TEST_RANK=", number))
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p
}

// line reads what a process says next; "" once it has ended.
func (p *rankProcess) line() string {
	text, err := p.out.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// SIGKILL of a random process of several that save together, at a random instant: the newest checkpoint is whole and
// not older than what was committed, and the next start clears the rest and goes on.
func TestTortureKilledRanksOfASave(t *testing.T) {
	root := t.TempDir()
	newest := int64(0)
	save := 10 * time.Millisecond // what the last one took
	torture.Run(t, 12, func(r *rand.Rand) (fault, outcome string) {
		victim, until := r.IntN(killedRanks), int64(r.IntN(3))
		ranks := make([]*rankProcess, killedRanks)
		for i := range ranks {
			ranks[i] = startRank(t, root, i)
		}
		kill := func() {
			time.AfterFunc(time.Duration(r.Int64N(int64(2*save))), func() { ranks[victim].cmd.Process.Kill() })
		}
		if until == 0 {
			kill()
		}
		committed, saves := int64(0), int64(0)
		for began := time.Now(); ; began = time.Now() {
			begun := ranks[0].line()
			for _, p := range ranks[1:] {
				fmt.Fprintln(p.in, begun)
			}
			written := 0
			for _, p := range ranks[1:] {
				if begun != "" && p.line() == "written" {
					written++
				}
			}
			if written < killedRanks-1 {
				break
			}
			fmt.Fprintln(ranks[0].in, "written")
			said := ranks[0].line()
			if said == "" {
				break
			}
			if _, err := fmt.Sscanf(said, "committed %d", &committed); err != nil {
				t.Fatalf("rank 0 says %q", said)
			}
			if saves++; saves > 1 {
				save = time.Since(began)
			}
			if saves == until {
				kill()
			}
		}
		for i, p := range ranks {
			p.cmd.Process.Kill() // as a launcher does once a rank is lost
			p.cmd.Wait()
			if i == victim && p.stderr.Len() > 0 {
				t.Fatalf("rank %d ended by itself: %s", i, p.stderr.String())
			}
		}
		fault, outcome = "kill -9 of one of the ranks that save a checkpoint together", "the newest one is whole"
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
	if newest < 4 {
		t.Errorf("only %d steps were saved", newest)
	}
	s := mustOpen(t, root, Options{Log: quiet})
	for _, name := range names(t, root) {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s is left after the next start", name)
		}
	}
	mustSave(t, s, childBytes, newest+1)
	wantLatest(t, root, newest+1, childBytes)
}
