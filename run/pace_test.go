package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

func TestLengthFollowsTheClock(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct {
		name        string
		made, steps int
		decay       float64
		each        time.Duration
		left        time.Duration
		want        int
	}{
		{"as planned", 500, 1000, 0.2, 10 * time.Millisecond, 5 * time.Second, 1000},
		{"almost as planned", 500, 1000, 0.2, 10 * time.Millisecond, 5050 * time.Millisecond, 1000},
		{"faster", 500, 1000, 0.2, 5 * time.Millisecond, 5 * time.Second, 1500},
		{"slower", 500, 1000, 0.2, 20 * time.Millisecond, 5 * time.Second, 750},
		// the decay begins now: a fifth of 625 is 125
		{"far too slow", 500, 1000, 0.2, time.Second, 5 * time.Second, 625},
		{"before any decay", 100, 1000, 1, 10 * time.Millisecond, 5 * time.Second, 600},
		{"over", 800, 1000, 0.2, time.Second, -time.Second, 1000},
	} {
		p := pace{end: begin.Add(c.left), at: begin.Add(-time.Duration(c.made) * c.each)}
		cfg := &config.Config{
			Train:    config.Train{Steps: c.steps},
			Schedule: config.Schedule{Warmup: 100, DecayFraction: c.decay},
		}
		if got := p.length(cfg, c.made, begin); got != c.want {
			t.Errorf("%s: %d steps, want %d", c.name, got, c.want)
		}
	}
}

// However much time there is, a run gets no more steps than it may have.
func TestLengthHasALimit(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.steps=60", "schedule.name=wsd", "train.eval_every=0")
	r, err := Run(context.Background(), Options{
		Config: cfg, Dir: t.TempDir() + "/run", Threads: 2, Time: time.Minute, MostSteps: 80,
	})
	if err != nil || r.Step != 80 || r.Steps != 80 {
		t.Errorf("%v, want 80 steps: %v", r, err)
	}
}

// A run whose length has followed the clock is the run that had this length from its beginning, on any number of ranks
// and resumed or not.
func TestRunThatFollowsTheClockHasTheBitsOfAPlainOne(t *testing.T) {
	data := traintest.Data(t)
	for _, ranks := range []int{1, 2} {
		cfg := smallConfig(t, data, "train.steps=3000", "schedule.name=wsd", "train.eval_every=0",
			fmt.Sprintf("parallel.ranks=%d", ranks))
		dir := t.TempDir() + "/run"
		var remarks []string
		timed, err := Run(context.Background(), Options{
			Config: cfg, Dir: dir, Threads: 2, Time: time.Second, Note: func(s string) { remarks = append(remarks, s) },
			Warn: func(s string) { t.Errorf("warned: %s", s) },
		})
		if err != nil {
			t.Fatal(err)
		}
		steps := timed.Step
		if steps >= 3000 {
			t.Fatalf("%d ranks: %d steps, though there is time for a few hundred", ranks, steps)
		}
		text, err := os.ReadFile(dir + "/config.yaml")
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("steps: %d ", steps)) {
			t.Errorf("%v: config.yaml has not %d steps:\n%s", err, steps, text)
		}
		if !strings.Contains(strings.Join(remarks, "\n"), "train.steps = ") {
			t.Errorf("%q do not tell of the new length", remarks)
		}
		if r, err := Verify(dir); err != nil || len(r.Remarks) > 0 {
			t.Errorf("%d ranks: nobody changed the run: %v, %q", ranks, err, r.Remarks)
		}
		again, err := Resume(context.Background(), Options{Dir: dir, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if again.Step != steps || again.WeightsHash != timed.WeightsHash {
			t.Errorf("%d ranks: resumed, the run of %d steps has %d", ranks, steps, again.Step)
		}
		plain, err := Run(context.Background(), Options{
			Config: smallConfig(t, data, fmt.Sprintf("train.steps=%d", steps), "schedule.name=wsd",
				"train.eval_every=0", "schedule.warmup=1"),
			Dir: t.TempDir() + "/run", Threads: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		if plain.WeightsHash != timed.WeightsHash {
			t.Errorf("%d ranks: the weights are not those of a plain run of %d steps", ranks, steps)
		}
	}
}

// A run whose config.yaml cannot be written at a look keeps its length, warns, and follows the clock at the next look.
func TestARunWhoseLengthCannotBeRecordedContinues(t *testing.T) {
	dir := t.TempDir() + "/run"
	inTheWay := runDir(dir).config() + unfinished
	var s said
	warn := func(text string) {
		s.warn(text)
		os.Remove(inTheWay)
	}
	r, err := Run(context.Background(), Options{
		Config: smallConfig(t, traintest.Data(t), "train.steps=3000", "schedule.name=wsd", "train.eval_every=0"),
		Dir:    dir, Threads: 2, Time: time.Second, Warn: warn,
		OnProgress: func(e train.Event) {
			if e.Step == 1 {
				if err := os.Mkdir(inTheWay, 0o777); err != nil {
					t.Error(err)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s.all(), "train.steps remains 3000 instead of "); n != 1 || r.Step >= 3000 {
		t.Errorf("%d steps; it said %q", r.Step, s.all())
	}
	if cfg := mustLoad(t, dir); cfg.Train.Steps != r.Step {
		t.Errorf("config.yaml has %d steps, the run made %d", cfg.Train.Steps, r.Step)
	}
}

// A run that has rewound itself still follows the clock of its process.
func TestARewoundRunFollowsTheClock(t *testing.T) {
	data, dir := traintest.Data(t), t.TempDir()+"/run"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys := []string{"schedule.name=wsd", "schedule.warmup=1", "train.eval_every=0"}
	begun, err := Run(ctx, Options{
		Config: smallConfig(t, data, append(keys, "train.steps=3000")...), Dir: dir, Threads: 2,
		OnProgress: func(e train.Event) {
			if e.Step == 20 {
				cancel()
			}
		},
	})
	if err != nil || !begun.Interrupted {
		t.Fatal(begun, err)
	}
	timed, err := Resume(context.Background(), Options{Dir: dir, Threads: 2, Time: time.Second, rewound: true})
	if err != nil {
		t.Fatal(err)
	}
	if timed.Step <= 20 || timed.Step >= 3000 {
		t.Fatalf("%d steps, though there is time for a few hundred", timed.Step)
	}
	plain := mustRun(t, Options{
		Config: smallConfig(t, data, append(keys, fmt.Sprint("train.steps=", timed.Step))...),
		Dir:    t.TempDir() + "/run", Threads: 2,
	})
	if plain.WeightsHash != timed.WeightsHash {
		t.Errorf("the weights are not those of a plain run of %d steps", timed.Step)
	}
}
