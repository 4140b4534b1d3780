//go:build unix

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func shell(script string) Program {
	return Program{Command: []string{"/bin/sh", "-c", script}, Timeout: 20 * time.Second, Memory: 256 << 20}
}

// A program accepts by exit code 0, whatever it prints or reads.
func TestAProgramAcceptsByItsExitCode(t *testing.T) {
	long := strings.Repeat("x", 1<<20) // more than a pipe holds
	for _, c := range []struct {
		script, answer string
		want           Verdict
	}{
		{`test "$(cat)" = "1+1=2"`, "2", Accepted}, {`test "$(cat)" = "1+1=2"`, "3", Rejected},
		{"exit 0", long, Accepted}, {"exit 7", long, Rejected}, {"kill -9 $$", "2", Crashed},
		{"head -c 3000000 /dev/zero", "2", Accepted}, {"head -c 3000000 /dev/zero >&2; exit 1", "2", Rejected},
	} {
		if got, err := shell(c.script).Verify(t.Context(), "1+1=", c.answer); got != c.want || err != nil {
			t.Errorf("%s: %v, want %v: %v", c.script, got, c.want, err)
		}
	}
}

// A program that hangs is killed with those that it started.
func TestAProgramThatHangsIsKilled(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	p := shell("(sleep 1.2; touch " + mark + ") & wait")
	p.Timeout = 200 * time.Millisecond
	start := time.Now()
	if got, err := p.Verify(t.Context(), "a", "b"); got != TimedOut || err != nil {
		t.Errorf("%v after %v: %v", got, time.Since(start), err)
	}
	p = shell("(sleep 1.2; touch " + mark + ") &") // it leaves one behind
	if got, err := p.Verify(t.Context(), "a", "b"); got != Accepted || err != nil {
		t.Errorf("%v: %v", got, err)
	}
	time.Sleep(2 * time.Second)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a process that the verifier started outlived it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := shell("sleep 9").Verify(ctx, "a", "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the loop was stopped: %v", err)
	}
}

func TestAProgramHasItsMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux limits a process that runs")
	}
	grow := `s=x; while [ ${#s} -lt 60000000 ]; do s=$s$s; done`
	p := shell(grow)
	if got, err := p.Verify(t.Context(), "", ""); got != Accepted || err != nil {
		t.Errorf("with 256 MiB: %v, %v", got, err)
	}
	p.Memory = 16 << 20
	if got, err := p.Verify(t.Context(), "", ""); got != Rejected && got != Crashed || err != nil {
		t.Errorf("with 16 MiB: %v, %v", got, err)
	}
}

func TestAProgramThatCannotBeStartedIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"plain": "hello", "orphan": "#!/no/such/interpreter\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "orphan", "text", "missing", "."} {
		p := shell("")
		p.Command = []string{filepath.Join(dir, name)}
		if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be started") {
			t.Errorf("%s: %v", name, err)
		}
	}
	start := time.Now()
	if err := shell("sleep 9").Check(t.Context()); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("a slow program is checked in %v: %v", time.Since(start), err)
	}
}
