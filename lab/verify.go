package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"anneal/config"
)

// A Verdict is a verifier's result for a sample.
type Verdict int

const (
	Rejected Verdict = iota
	Accepted
	TimedOut // the verifier did not end in time
	Crashed  // ended by a signal, such as for lack of memory
)

// A Verifier judges the answer that a model gave to a prompt. Improve calls it from several goroutines. An error ends
// the loop.
type Verifier func(ctx context.Context, prompt, answer string) (Verdict, error)

// A Program is a verifier that reads a sample, the prompt with its answer, on standard input, and accepts it by the
// exit code 0. Its output is discarded.
type Program struct {
	Command []string      // the program and its arguments
	Timeout time.Duration // for one sample; then it is killed, on Unix with the processes that it started
	Memory  int64         // bytes of data that a process may have; 0: no limit. Linux only
}

// Check returns an error unless the program can be started. It starts the program and kills it at once.
func (p Program) Check(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := p.command(ctx, "")
	if err := cmd.Start(); err != nil {
		return p.cannotStart(err)
	}
	cancel()
	cmd.Wait() // the program was killed, so its exit code means nothing
	return nil
}

func (p Program) cannotStart(err error) error {
	try := "the path of a program, as in --verify ./check.sh"
	if !strings.ContainsRune(p.Command[0], '/') {
		try = "--verify ./" + p.Command[0] + " if it is in this directory"
	}
	return config.Problem{Message: fmt.Sprintf("the verifier %s cannot be started: %v", p.Command[0], err), Try: try}
}

// Verify is a Verifier.
func (p Program) Verify(ctx context.Context, prompt, answer string) (Verdict, error) {
	bounded, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := p.command(bounded, prompt+answer)
	if err := cmd.Start(); err != nil {
		return Rejected, errors.Join(ctx.Err(), p.cannotStart(err))
	}
	if err := limitMemory(cmd.Process.Pid, p.Memory); err != nil {
		cancel()
		return Rejected, errors.Join(fmt.Errorf("limiting the memory of %s: %w", p.Command[0], err), cmd.Wait())
	}
	err := cmd.Wait()
	endGroup(cmd)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Rejected, ctx.Err()
	case bounded.Err() != nil:
		return TimedOut, nil
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a process that it left running kept its input open
		return Accepted, nil
	case !errors.As(err, &exit):
		return Rejected, fmt.Errorf("the verifier %s: %w", p.Command[0], err)
	case exit.ExitCode() < 0:
		return Crashed, nil
	}
	return Rejected, nil
}

// command returns the command of the program, with a sample to read.
func (p Program) command(ctx context.Context, sample string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	cmd.Stdin = strings.NewReader(sample)
	cmd.WaitDelay = time.Second
	asGroup(cmd)
	return cmd
}
