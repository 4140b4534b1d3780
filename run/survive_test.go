package run

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// spikyConfig is a run in which any loss a little above the recent ones counts as divergence, after which it goes
// back.
func spikyConfig(data string) *config.Config {
	cfg := rewindConfig(data)
	cfg.Guard = config.Guard{MaxSkips: 1, SpikeZ: 1.5, Window: 8, OnDivergence: config.Rewind, Rewinds: 50}
	return cfg
}

// leftOut returns the configuration of a run and the samples that it leaves out.
func leftOut(t *testing.T, dir string) (*config.Config, map[uint64]bool) {
	t.Helper()
	cfg, out := mustLoad(t, dir), map[uint64]bool{}
	for _, r := range cfg.Data.Skip {
		maps.Copy(out, samples([2]uint64{r.From, r.To}))
	}
	return cfg, out
}

// A run that diverges goes back by itself and leaves out the batches, and ends with the bits of one that never saw
// them: also stopped and resumed anywhere, also with the rewind itself interrupted.
func TestADivergedRunGoesBackByItself(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	var s said
	r, err := Run(context.Background(), Options{Config: spikyConfig(data), Dir: dir, Warn: s.warn})
	if err != nil {
		t.Fatal(err)
	}
	cfg, out := leftOut(t, dir)
	if n := strings.Count(s.all(), "training diverged at step "); n == 0 || cfg.Guard.Rewound != n || len(out) == 0 ||
		len(out)%8 != 0 {
		t.Fatalf("%d rewinds were told, %d counted; %d samples are left out\n%s",
			n, cfg.Guard.Rewound, len(out), s.all())
	}
	if strings.Contains(s.all(), "has changed since") {
		t.Errorf("it warns of the changes that it made itself:\n%s", s.all())
	}
	events := slices.DeleteFunc(readJournal(t, dir), func(e string) bool { return !strings.HasPrefix(e, "rewound: ") })
	marked := 0
	for _, l := range readMetrics(t, dir) {
		if l["rewound"] == true {
			marked++
		}
	}
	if len(events) != cfg.Guard.Rewound || marked < cfg.Guard.Rewound {
		t.Errorf("the journal has %d of %d rewinds, the metrics have %d steps that were undone",
			len(events), cfg.Guard.Rewound, marked)
	}
	started, continued := 0, 0
	for _, e := range readJournal(t, dir) {
		started, continued = started+strings.Count(e, "started"), continued+strings.Count(e, "continued")
	}
	if past, err := runDir(dir).past(); err != nil || past.starts != 1 || past.killed || started != 1 ||
		continued != cfg.Guard.Rewound {
		t.Errorf("one process, of which the journal says %+v, %v: it started %d times and continued %d times",
			past, err, started, continued)
	}
	want := [2]string{r.WeightsHash, r.OptimizerHash}
	if got := neverSaw(t, spikyConfig(data), out); got != want {
		t.Errorf("the run ends with %.12s, without the samples from the start it is %.12s", want[0], got[0])
	}
	for _, stop := range []int{1, 19, 30} { // micro-batches
		other := filepath.Join(t.TempDir(), "run")
		o := Options{Config: spikyConfig(data), Dir: other}
		ctx := &countdown{context.Background(), stop}
		if _, err := Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		if got := resumeTo(t, other); got != want {
			t.Errorf("stopped after %d micro-batches and resumed: %.12s, want %.12s", stop, got[0], want[0])
		}
		if again, _ := leftOut(t, other); again.Data.Skip.String() != cfg.Data.Skip.String() ||
			again.Guard.Rewound != cfg.Guard.Rewound {
			t.Errorf("stopped after %d micro-batches it leaves out %s after %d rewinds, want %s after %d",
				stop, again.Data.Skip, again.Guard.Rewound, cfg.Data.Skip, cfg.Guard.Rewound)
		}
	}
}

// A run without rewinds left stops as without the option. With more rewinds allowed it resumes to the same bits.
func TestRewindsOfADivergedRunAreLimited(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: spikyConfig(data), Dir: filepath.Join(t.TempDir(), "whole")})
	cfg := spikyConfig(data)
	cfg.Guard.Rewinds = 1
	_, err := Run(context.Background(), Options{Config: cfg, Dir: dir})
	if away := (*DivergedError)(nil); !errors.As(err, &away) ||
		!strings.Contains(err.Error(), "already rewound itself 1 time, as often as guard.rewinds allows") {
		t.Fatal(err)
	}
	if ruin := (*DivergedRunError)(nil); !errors.As(runDir(dir).checkDiverged(0), &ruin) {
		t.Error("the run does not count as diverged")
	}
	again := filepath.Join(t.TempDir(), "again") // a new run of that configuration has its rewinds before it
	cfg = mustLoad(t, dir)
	cfg.Train.Steps, cfg.Schedule.Warmup = 1, 1
	mustRun(t, Options{Config: cfg, Dir: again})
	if was, now := mustLoad(t, dir).Guard.Rewound, mustLoad(t, again).Guard.Rewound; was != 1 || now != 0 {
		t.Errorf("the run has rewound %d times, a new one of its configuration %d times", was, now)
	}
	edit(t, dir, "guard.rewinds=50")
	if got := resumeTo(t, dir); got != [2]string{want.WeightsHash, want.OptimizerHash} {
		t.Errorf("with more rewinds it ends with %.12s, want %.12s", got[0], want.WeightsHash)
	}
}

// A run whose checkpoints are all from after the point to which it goes back makes the steps from the start again.
func TestARunGoesBackBeforeItsCheckpoints(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	cfg := rewindConfig(data)
	cfg.Checkpoint.Keep = 2
	cfg.Guard.OnDivergence, cfg.Guard.Rewinds = config.Rewind, 1
	o := Options{Config: cfg, Dir: dir}
	mustRun(t, o)
	o.Warn = func(string) {}
	if again, err := rewindDiverged(&DivergedError{Step: 12, First: 10, Skips: 3, Dir: dir}, o); err != nil || !again {
		t.Fatal(again, err)
	}
	_, out := leftOut(t, dir)
	if want, got := neverSaw(t, rewindConfig(data), out), resumeTo(t, dir); len(out) != 4*8 || got != want {
		t.Errorf("without %d samples the run ends with %.12s, want %.12s", len(out), got[0], want[0])
	}
}
