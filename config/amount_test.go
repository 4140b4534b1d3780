package config

import (
	"strings"
	"testing"
)

// What is written as a part of the run or in tokens is resolved to steps, says so, and reads back as those steps.
func TestWarmupInStepsPercentAndTokens(t *testing.T) {
	base := []string{"data.path=d", "train.steps=400", "train.batch_tokens=16384"}
	for text, want := range map[string]int{
		"7": 7, "7 steps": 7, "1_00": 100, "2%": 8, "2.1%": 9, "100 %": 400, "16384 tokens": 1, "16385 tokens": 2,
		"1M tokens": 62, "0.5m tokens": 31, "200K tokens": 13, "0.001B tokens": 62, "1e6 tokens": 62,
	} {
		c, err := Load("", append(base, "schedule.warmup="+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if c.Schedule.Warmup != want {
			t.Errorf("%s of 400 steps of 16,384 tokens is %d steps, want %d", text, c.Schedule.Warmup, want)
		}
		if from := c.Origin("schedule.warmup").String(); strings.ContainsAny(text, "%t") &&
			!strings.Contains(text, "steps") && from != "derived: "+text {
			t.Errorf("%s: the origin is %q", text, from)
		}
		if err := c.Validate(); err != nil || c.Schedule.Warmup != want {
			t.Errorf("%s: checked again it is %d steps, %v", text, c.Schedule.Warmup, err)
		}
	}
	for _, text := range []string{
		"", "-1", "2.5", "x%", "1KM tokens", "1M", "-5 tokens", "NaN%", "1e300 tokens", "tokens", "5 hours",
	} {
		if c, err := Load("", append(base, "schedule.warmup="+text)); err == nil {
			t.Errorf("%q is taken for %d steps", text, c.Schedule.Warmup)
		}
	}
	// A later value replaces an earlier one, whatever its unit.
	if c, err := Load("", append(base, "schedule.warmup=50%", "schedule.warmup=3")); err != nil ||
		c.Schedule.Warmup != 3 {
		t.Errorf("50%% and then 3 steps: %v, %v", c, err)
	}
	// Under a ramp tokens are those of its steps: 16 of 4,096 and then one of the full size.
	if c, err := Load("", append(base, "train.micro_batch=1",
		"train.batch_ramp=4096 until 65536", "schedule.warmup=70K tokens")); err != nil || c.Schedule.Warmup != 17 {
		t.Errorf("70K tokens under a ramp: %v", err)
	}
}

// The derived micro-batch divides every step of a ramp.
func TestMicroBatchDividesEveryStepOfARamp(t *testing.T) {
	for ramp, want := range map[string]int{
		"": 16, "4096 over 1M": 16, "2048 over 1M": 8, "1280 until 100K, 2560 until 200K": 1,
		"1536 until 100K, 3072 until 200K": 2,
	} {
		c, err := Load("", []string{
			"data.path=d", "train.steps=400", "train.batch_tokens=16384", "train.batch_ramp=" + ramp,
		})
		if err != nil || c.Train.MicroBatch != want {
			t.Errorf("%q: micro-batches of %d sequences, %v; want %d", ramp, c.Train.MicroBatch, err, want)
		}
	}
}

// Whole numbers may have a multiple behind them; what could be steps or tokens is asked for.
func TestNumbersWithMultiples(t *testing.T) {
	c, err := Load("", []string{
		"data.path=d", "train.steps=2K", "train.batch_tokens=64Ki", "model.context=1Ki", "train.eval_tokens=1.5M",
		"checkpoint.every=1e2", "train.batch_ramp=16Ki over 1Mi tokens", "schedule.warmup=0.1K steps",
		"train.length_warmup=0.25Ki over 1K steps",
	})
	if err != nil {
		t.Fatal(err)
	}
	length, err := c.LengthRamp()
	if c.Train.Steps != 2000 || c.Train.BatchTokens != 65536 || c.Model.Context != 1024 ||
		c.Train.EvalTokens != 1_500_000 || c.Checkpoint.Every != 100 ||
		c.Schedule.Warmup != 100 || err != nil || length.From != 256 || length.Steps != 1000 {
		t.Errorf("%+v, %+v, warmup %d, length %+v", c.Train, c.Model, c.Schedule.Warmup, length)
	}
	if ramp, err := c.BatchRamp(); err != nil || ramp.Stages[0].From != 16384 || ramp.Stages[0].Until != 1<<20 {
		t.Errorf("batch ramp %+v, %v", ramp, err)
	}
	for override, want := range map[string]string{
		"schedule.warmup=1M": "write 1M steps or 1M tokens", "train.steps=2X": "such as 2000, 2K or 64Ki",
		"train.steps=1.0001K": "not an integer", "model.dim=0x10": "not an integer",
		"checkpoint.every=5m": "write 5M for millions", "train.eval_every=30m": "write 30M for millions",
	} {
		if _, err := Load("", []string{"data.path=d", override}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", override, err, want)
		}
	}
}

func TestMinutesAreADuration(t *testing.T) {
	for text, want := range map[string]float64{"3": 3, "0.5": 0.5, "1e-9": 1e-9, "90s": 1.5, "30m": 30, "1h30m": 90} {
		for _, load := range []func() (*Config, error){
			func() (*Config, error) { return Load("", []string{"data.path=d", "train.minutes=" + text}) },
			func() (*Config, error) {
				return parse([]byte(minimal+"train: {minutes: "+text+"}\n"), "run.yaml", nil)
			},
		} {
			c, err := load()
			if err != nil || c.Train.Minutes != want {
				t.Errorf("%s: %v; want %v minutes", text, err, want)
				continue
			}
			if again, err := parse(c.YAML(), "again.yaml", nil); err != nil || again.Train.Minutes != want {
				t.Errorf("%s: read again: %v", text, err)
			}
		}
	}
	for _, text := range []string{"", "5 days", "-3m", "NaN"} {
		if _, err := Load("", []string{"data.path=d", "train.minutes=" + text}); err == nil {
			t.Errorf("%q is taken for minutes", text)
		}
	}
	if _, err := Load("", []string{"data.path=d", "optimizer.lr=3m"}); err == nil {
		t.Error("a learning rate is a duration")
	}
	for override, want := range map[string]string{ // in the unit of who gave it
		"parallel.timeout=-1s": "parallel.timeout = -1s lies outside (0, 1e+06] minutes",
		"parallel.timeout=0":   "parallel.timeout = 0 lies outside (0, 1e+06] minutes",
		"train.minutes=-90s":   "train.minutes = -1m30s lies outside [0, 1e+09) minutes",
		"train.minutes=-2":     "train.minutes = -2 lies outside [0, 1e+09) minutes",
	} {
		if _, err := Load("", []string{"data.path=d", override}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", override, err, want)
		}
	}
}

// A stretch of one step or one token reads as such.
func TestOneStepAndOneToken(t *testing.T) {
	for _, text := range []string{"1", "1 step", "1 steps", "1step", "1 token", "1 tokens"} {
		c, err := Load("", []string{"data.path=d", "schedule.warmup=" + text})
		if err != nil || c.Schedule.Warmup != 1 {
			t.Errorf("%q: %v; want a warmup of 1 step", text, err)
		}
	}
	for _, text := range []string{"1 s", "1s", "step", "1 stepss", "1 tokenss", "1 steptoken"} {
		if _, err := Load("", []string{"data.path=d", "schedule.warmup=" + text}); err == nil {
			t.Errorf("%q is taken for a warmup", text)
		}
	}
}
