package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// If a file cannot grow, as on a full disk, curation says what to do and keeps its finished work. Given again with
// enough room, the command writes the same bytes as one that was not interrupted.
func TestCurateGoesOnAfterTheDiskWasFull(t *testing.T) {
	w := sharedInput(t)
	command := []string{"data", "curate", w.path("p.yaml"), w.path("crawl"), "--split", "20kB", "--threads", "2"}
	w.object(exitOK, append(command, "--out", w.path("whole"))...)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = append(command, "--out", w.path("stopped"))
	stops := 0
	for blocks := 24; ; blocks += 60 { // of 512 or 1,024 bytes, as the shell has it
		cmd := exec.Command("sh",
			append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, blocks), exe}, command...)...)
		cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		stops++
		if code := cmd.ProcessState.ExitCode(); code != exitResources ||
			!strings.Contains(string(out), "finished work is kept: make room, then give the same command again") {
			t.Fatalf("%d blocks: exit %d\n%s", blocks, code, out)
		}
	}
	if stops == 0 {
		t.Error("no limit was reached")
	}
	filetest.Same(t, fmt.Sprint(stops, " stops"), outputs(t, w.path("stopped")), outputs(t, w.path("whole")))
}

// An output that cannot be written is reported before the input is read.
func TestCurateIntoWhatIsNoDirectory(t *testing.T) {
	w := sharedInput(t)
	write(t, w.path("file"), "")
	code, _, errs := anneal("data", "curate", w.path("p.yaml"), w.path("crawl"), "--out", w.path("file/out"))
	if code != exitUsage || !strings.Contains(errs, "not a directory") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
