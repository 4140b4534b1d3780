package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// On text larger than --memory, whose lines are more than it sorts, all stages and a comparison by lines hold less than that.
func TestCurateHoldsNoMoreThanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 110 MB")
	}
	w := workshop{t, t.TempDir()}
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("the be to of and that have with a in river stone letter garden window paper morning quiet water table")
	var page strings.Builder
	for page.Len() < 4<<20 {
		page.WriteString(`{"text":"`)
		for range 30 {
			for range 12 {
				fmt.Fprintf(&page, "%s%d ", words[r.IntN(len(words))], r.IntN(100))
			}
			page.WriteString(`the end.\n`)
		}
		page.WriteString("\"}\n")
	}
	if err := os.Mkdir(w.path("crawl"), 0o777); err != nil {
		t.Fatal(err)
	}
	const files = 26
	for i := range files {
		write(t, w.path(fmt.Sprintf("crawl/%d.jsonl", i)), strings.ReplaceAll(page.String(), " the end.", fmt.Sprintf(" the end %c.", 'a'+i)))
	}
	write(t, w.path("p.yaml"), "stages: [normalize, {gopher_quality: {stop_words: {min: 1}}}, {dedup: {exact: line, near: false}}]\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const memory = 96
	cmd := exec.Command(exe, "data", "curate", w.path("p.yaml"), w.path("crawl"), "--out", w.path("out"), "--threads", "1", "--memory", fmt.Sprint(memory, "MiB"))
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = &errs, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := 0
	over := make(chan error)
	go func() { over <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-over:
			running = false
		case <-time.After(2 * time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if _, hwm, ok := strings.Cut(string(status), "VmHWM:"); ok {
				fmt.Sscan(hwm, &peak)
			}
		}
	}
	if err != nil || peak == 0 {
		t.Fatalf("%v, peak %d kB\n%s", err, peak, errs.String())
	}
	t.Logf("peak %d MiB of %d, on %d MiB\n%s", peak>>10, memory, files*page.Len()>>20, errs.String())
	if strings.Contains(errs.String(), "kept 0 of") {
		t.Errorf("nothing was compared: the input is no test\n%s", errs.String())
	}
	if peak>>10 > memory || !strings.Contains(errs.String(), "memory: 96 MiB at most: 72 for the process and its workers") {
		t.Errorf("peak %d MiB, want %d at most\n%s", peak>>10, memory, errs.String())
	}
}
