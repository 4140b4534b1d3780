package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On text larger than --memory, with more lines than fit the sort, all stages and deduplication by lines stay below
// --memory.
func TestCurateHoldsNoMoreThanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 110 MB")
	}
	w := workshop{t, t.TempDir()}
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("the be to of and that have with a in river stone letter garden window paper morning " +
		"quiet water table")
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
		write(t, w.path(fmt.Sprintf("crawl/%d.jsonl", i)),
			strings.ReplaceAll(page.String(), " the end.", fmt.Sprintf(" the end %c.", 'a'+i)))
	}
	write(t, w.path("p.yaml"), "stages: [normalize, {gopher_quality: {stop_words: {min: 1}}}, {dedup: {exact: line, "+
		"near: false}}]\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const memory = 96
	cmd := exec.Command(exe, "data", "curate", w.path("p.yaml"), w.path("crawl"), "--out", w.path("out"), "--threads",
		"1", "--memory", fmt.Sprint(memory, "MiB"))
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
	if peak>>10 > memory ||
		!strings.Contains(errs.String(), "memory: 96 MiB at most: 72 for the process and its workers") {
		t.Errorf("peak %d MiB, want %d at most\n%s", peak>>10, memory, errs.String())
	}
}

// controlGroup makes a control group with a limit in bytes and returns its directory. It skips the test if this
// process may not make one.
func controlGroup(t *testing.T, limit int) string {
	t.Helper()
	lines, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("no control groups here")
	}
	parent, limitFile := "", "memory.max"
	for line := range strings.Lines(string(lines)) {
		switch parts := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(parts) == 3 && parts[1] == "memory":
			parent, limitFile = "/sys/fs/cgroup/memory"+parts[2], "memory.limit_in_bytes"
		case len(parts) == 3 && parts[1] == "" && parent == "":
			parent = "/sys/fs/cgroup" + parts[2]
		}
	}
	dir, err := os.MkdirTemp(parent, "anneal-test-*")
	if err != nil {
		t.Skip("control groups cannot be made here: ", err)
	}
	t.Cleanup(func() { syscall.Rmdir(dir) })
	for _, file := range []string{limitFile, "cgroup.procs"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Skip("control groups here do not bound memory: ", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, limitFile), fmt.Append(nil, limit), 0); err != nil {
		t.Skip("control groups here do not bound memory: ", err)
	}
	return dir
}

// In a control group or under ulimit, data commands refuse work that does not fit, or make do with the available
// memory, before the kernel kills them or refuses memory.
func TestDataCommandsLiveWithinTheirLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 24 MB")
	}
	w := workshop{t, t.TempDir()}
	r := rand.New(rand.NewPCG(7, 7))
	var lines strings.Builder
	for lines.Len() < 24<<20 {
		lines.WriteString(`{"text":"`)
		for range 300 {
			fmt.Fprintf(&lines, "%x ", r.Uint32N(1<<24))
		}
		lines.WriteString("\"}\n")
	}
	write(t, w.path("text.jsonl"), lines.String())
	write(t, w.path("p.yaml"), "stages: [normalize, {dedup: {exact: [document, paragraph]}}]\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dedup := []string{"data", "dedup", w.path("text.jsonl"), "--threads", "2", "--out", w.path("d"), "--ngrams"}
	commands := []struct {
		args []string
		code int
		want string
	}{
		{dedup, exitResources, "(--bloom)"},
		{append(dedup, "--bloom", "24MiB", "--exact", "document,paragraph"), exitOK, "kept"},
		{[]string{"data", "curate", w.path("p.yaml"), w.path("text.jsonl"), "--threads", "2", "--out", w.path("c")},
			exitOK, "kept"},
		{[]string{"tokenizer", "train", "--vocab", "1000", w.path("text.jsonl"), "--threads", "2", "--out",
			w.path("t.json")}, exitOK, "1,000 tokens"},
	}
	group, idle := controlGroup(t, 176<<20), virtual(t, exe)
	for name, enter := range map[string]func(code int) string{
		"a control group": func(int) string { return fmt.Sprintf("echo $$ > %s/cgroup.procs", group) },
		"ulimit -v": func(code int) string {
			limit := idle + (448+176)<<10 // threads of a busy machine reserve more
			if code != exitOK {
				limit -= (192 + 176) << 10 // the idle command varies by two arenas of the Go runtime, 128 MiB
			}
			return fmt.Sprintf("ulimit -v %d", limit)
		},
	} {
		for _, c := range commands {
			cmd := exec.Command("sh", append([]string{"-c", enter(c.code) + ` && exec "$0" "$@"`, exe}, c.args...)...)
			cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
				t.Errorf("%s, %s: %v, exit %d, want %d\n%.3000s",
					name, strings.Join(c.args[:2], " "), err, code, c.code, out)
			}
			for _, out := range []string{"d", "c"} {
				os.RemoveAll(w.path(out))
			}
		}
	}
}

// virtual returns the address space in KiB of an idle command.
func virtual(t *testing.T, exe string) int {
	t.Helper()
	cmd := exec.Command(exe, "doctor")
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := 0
	over := make(chan error)
	go func() { over <- cmd.Wait() }()
	for {
		select {
		case err := <-over:
			if err != nil || peak == 0 {
				t.Fatalf("%v, %d KiB", err, peak)
			}
			return peak
		case <-time.After(time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if _, size, ok := strings.Cut(string(status), "VmPeak:"); ok {
				fmt.Sscan(size, &peak)
			}
		}
	}
}
