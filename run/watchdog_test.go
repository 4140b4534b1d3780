package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anneal/comm"
	"anneal/train/traintest"
)

// Sections are late by what they took before: at least a minute, ten times the slowest, an hour the first time; each
// is told once, and time in which the process was stopped does not count.
func TestTheWatchdogLearnsItsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []stall
		w := newWatchdog(defaultLimits, func(s stall) { told = append(told, s) })
		defer w.close()
		take := func(s section, d time.Duration, want int) {
			t.Helper()
			told = nil
			w.enter(s)
			time.Sleep(d)
			w.enter(idle)
			synctest.Wait()
			if len(told) != want {
				t.Errorf("%v for %v was told %d times, want %d: %+v", s, d, len(told), want, told)
			}
		}
		take(computing, 59*time.Minute, 0) // the first
		take(readingData, time.Second, 0)
		take(readingData, 59*time.Second, 0)
		take(readingData, 9*time.Minute, 0) // ten times the slowest, 59 s, is 590 s
		take(updating, time.Second, 0)
		take(updating, 5*time.Minute, 1)
		if s := told[0]; s.section != updating || s.slowest != time.Second || s.limit != time.Minute ||
			s.elapsed > 63*time.Second {
			t.Errorf("the update was told as %+v", s)
		}
		take(updating, 5*time.Minute, 1) // what was late is no measure
		take(evaluating, 2*time.Hour, 1)
		take(idle, 24*time.Hour, 0)
	})
}

// An hour in which a process was stopped is no part of a section, whether the section ends or the watchdog looks first.
func TestStoppedProcessesDoNotStall(t *testing.T) {
	for name, first := range map[string]func(w *watchdog){
		"a look": func(w *watchdog) {
			if _, late := w.look(time.Now()); late {
				t.Error("an update in which the process was stopped for an hour counts as late")
			}
		},
		"the next section": func(w *watchdog) { w.enter(updating) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &watchdog{limits: defaultLimits}
			w.enter(updating)
			time.Sleep(time.Second)
			w.enter(updating)
			time.Sleep(time.Hour)
			first(w)
			if s := w.slowest[updating]; s > time.Minute {
				t.Errorf("before %s: an update took %v", name, s)
			}
			for range 3600 {
				time.Sleep(defaultLimits.tick)
				if _, late := w.look(time.Now()); late {
					return
				}
			}
			t.Errorf("before %s: an update of %v does not count as late", name, 3600*defaultLimits.tick)
		})
	}
}

// A stalled run leaves stacks and state, says so in a line, and ends with its code if it should; without the watchdog
// nobody looks.
func TestAStalledRunLeavesItsStacks(t *testing.T) {
	for _, exit := range []bool{false, true} {
		cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
		cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Watchdog.Exit = 2, 1, exit
		mustRun(t, Options{Config: cfg, Dir: dir})
		var w said
		s := &session{Options: Options{Dir: dir, Warn: w.warn}, cfg: cfg, dir: runDir(dir)}
		s.world = group{Comm: comm.Alone{}}
		code := 0
		s.exit = func(c int) { code = c }
		var err error
		if s.journal, err = openJournal(s.dir, 2); err != nil {
			t.Fatal(err)
		}
		s.stalled(stall{savingState, 5 * time.Minute, time.Second, time.Minute})
		s.journal.close()
		files, _ := filepath.Glob(filepath.Join(dir, "crash", "stall-*.txt"))
		if len(files) != 1 || !strings.Contains(w.all(), "saving of step 3 has taken 5m0s") ||
			!strings.Contains(w.all(), files[0]) {
			t.Fatalf("the run has %v, it says %s", files, w.all())
		}
		text, err := os.ReadFile(files[0])
		if err != nil || !strings.Contains(string(text), "saving of step 3 of 2: 5m0s so far") ||
			!strings.Contains(string(text), "TestAStalledRunLeavesItsStacks") {
			t.Errorf("%v\n%.2000s", err, text)
		}
		if want := map[bool]int{true: ExitStalled}[exit]; code != want {
			t.Errorf("exit %v: the process ends with %d, want %d", exit, code, want)
		}
		if !strings.Contains(w.all(), "far more than the slowest so far, 1s") {
			t.Errorf("it says %s", w.all())
		}
	}
	var w said // of a section that none before it can be compared with
	s := &session{Options: Options{Dir: t.TempDir(), Warn: w.warn}, cfg: traintest.Config(""), journal: &journal{}}
	s.stalled(stall{readingData, 2 * time.Hour, 0, time.Hour})
	if !strings.Contains(w.all(), "reading data of step 1 has taken 2h0m0s, and none was completed before") {
		t.Errorf("it says %s", w.all())
	}
}

// Every part of a run is watched.
func TestEveryPartOfARunIsWatched(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Checkpoint.Every, cfg.Schedule.Warmup = 4, 2, 2, 1
	s, err := newSession(cfg, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.create(false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for part := readingData; part < sections; part++ {
		if s.watch.slowest[part] == 0 {
			t.Errorf("%v has no measured time", part)
		}
	}
	if s.watch.section != idle {
		t.Errorf("after its end the run is at %v", s.watch.section)
	}
}

// stuck is a context that never answers once it was asked so many times: between two micro-batches, as a device that
// hangs.
type stuck struct {
	context.Context
	left int
}

func (c *stuck) Err() error {
	if c.left--; c.left < 0 {
		select {}
	}
	return nil
}

// childStall is a run that stalls in its sixth step.
func childStall(dir, data string) int {
	defaultLimits = watchLimits{factor: 10, least: time.Second, first: time.Minute, tick: 10 * time.Millisecond}
	cfg := traintest.Config(data)
	cfg.Train.MicroBatch, cfg.Checkpoint.Every, cfg.Watchdog.Exit = 4, 2, true
	_, err := Run(&stuck{context.Background(), 11},
		Options{Config: cfg, Dir: dir, Warn: func(text string) { fmt.Println(text) }})
	fmt.Println(err)
	return 1
}

// With watchdog.exit a run that stalls ends the process with its code and leaves its stacks; the resume goes on from
// the last checkpoint.
func TestAStalledProcessEnds(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_STALL="+dir, "ANNEAL_TEST_DATA="+data)
	out, _ := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != ExitStalled ||
		!strings.Contains(string(out), "of step 6 has taken") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "crash", "stall-*.txt"))
	if len(files) != 1 {
		t.Fatalf("the run has %v", files)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "(*stuck).Err") {
		t.Errorf("%v\n%.3000s", err, text)
	}
	resumeTo(t, dir)
}
