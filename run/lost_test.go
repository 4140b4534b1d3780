//go:build unix

package run

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"anneal/comm/local"
)

// A rank of this host whose process ends is named, with the step and the operation; one that was not seen alive is not.
func TestARankWhoseProcessEndsIsNamed(t *testing.T) {
	dir := runDir(t.TempDir())
	if err := os.Mkdir(dir.ranks(), 0o777); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Skip(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip(err)
	}
	for rank, pid := range []int{os.Getpid(), other.Process.Pid, dead.Process.Pid} {
		l := newLookout(time.Minute)
		l.now.PID = pid
		l.open(dir.place(rank))
		l.close()
	}
	s := &session{dir: dir, look: newLookout(time.Minute), world: group{Comm: local.New(3, local.Options{})[0]}}
	s.look.begin(7)
	s.look.wait("the gradients of head")
	gone := s.findGone()
	if err := gone(); err != nil {
		t.Fatalf("nobody has ended: %v", err)
	}
	other.Process.Kill()
	other.Wait()
	lost, err := (*LostError)(nil), gone()
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "step 7: rank 1 on ") ||
		!strings.Contains(err.Error(), " was lost in the gradients of head: its process ") {
		t.Errorf("%v", err)
	}
}
