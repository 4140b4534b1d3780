package torture

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"
)

// Kill starts a command and kills it with SIGKILL at a random instant of the CPU time cpu that it takes, which does
// not depend on how busy the machine is. It reports whether the command was killed, which may have ended before. A
// command that ends by itself must succeed.
func Kill(t *testing.T, r *rand.Rand, cmd *exec.Cmd, cpu time.Duration) (killed bool) {
	t.Helper()
	at := time.Duration(r.Float64() * float64(cpu))
	wait := time.Duration(r.ExpFloat64() * float64(2*time.Millisecond)) // to reach system calls without CPU time
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	clock := cpuClock(cmd.Process.Pid)
	for clock() < at {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v ended by itself: %v", cmd.Args, err)
			}
			return false
		case <-time.After(200 * time.Microsecond):
		}
	}
	time.Sleep(wait)
	cmd.Process.Kill()
	err := <-ended
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		t.Fatalf("%v ended by itself: %v", cmd.Args, err)
	}
	return err != nil
}

// wallClock returns a clock of the time since now.
func wallClock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}
