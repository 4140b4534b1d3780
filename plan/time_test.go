package plan

import (
	"math"
	"strings"
	"testing"

	"anneal/comm"
	"anneal/config"
	"anneal/device"
	profile "anneal/machine"
	"anneal/train"
)

// invented is a profile on which every call of a configuration takes a number of seconds for each of its bytes.
func invented(t *testing.T, cfg *config.Config, perByte float64) *profile.Profile {
	t.Helper()
	rec, err := train.RecordStep(cfg, device.Null{}, comm.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	s := profile.Section{Threads: 1}
	seen := map[device.Call]bool{}
	for c := range rec.Calls {
		if !seen[c.Call] {
			seen[c.Call] = true
			s.Samples = append(s.Samples, profile.Sample{Call: c.Call, Seconds: 1e-9 + c.Bytes*perByte})
		}
	}
	return &profile.Profile{Sections: []profile.Section{s}}
}

func timed(t *testing.T, overrides ...string) *config.Config {
	t.Helper()
	cfg, err := config.Sources{Planning: true, Overrides: append([]string{
		"model.layers=2", "model.dim=64", "model.heads=2", "model.context=64", "model.vocab=512", "precision=bf16",
		"train.micro_batch=2", "train.batch_tokens=512", "train.steps=100", "train.eval_every=50",
		"train.eval_tokens=1024", "threads=1", "data.path=none",
	}, overrides...)}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The time of a step is the sum of its calls, phase by phase, and the time of a run follows from it.
func TestTimeIsTheSumOfTheCalls(t *testing.T) {
	cfg := timed(t)
	p := invented(t, cfg, 1e-9)
	got, err := TimeOf(cfg, device.Null{}, p)
	if err != nil {
		t.Fatal(err)
	}
	want, phases := 0.0, 0.0
	for _, k := range got.Kernels {
		want += float64(k.Count) * (1e-9 + k.Bytes*1e-9)
	}
	for _, s := range got.Phases {
		phases += s
	}
	if math.Abs(got.Step-want) > 0.1*want || math.Abs(got.Step-phases) > 1e-9*phases {
		t.Errorf("a step takes %v s, its calls %v, its phases %v", got.Step, want, phases)
	}
	for _, x := range []train.Phase{train.Forward, train.Head, train.Backward, train.Summing, train.Updating} {
		if !(got.Phases[x.String()] > 0) {
			t.Errorf("%v takes no time", x)
		}
	}
	if rate := 512 / got.Step; math.Abs(got.TokensPerSecond-rate) > 1e-9*rate {
		t.Errorf("%v tokens/s at %v s a step", got.TokensPerSecond, got.Step)
	}
	if steps := 100 * got.Step; got.Seconds < steps || got.Seconds > steps+2*2*got.Step {
		t.Errorf("the run takes %v s, its steps %v", got.Seconds, steps)
	}
}

// What makes a step longer or shorter does so in the prediction: recomputation, more micro-batches, train.minutes.
func TestTimeFollowsTheConfiguration(t *testing.T) {
	base := timed(t)
	p := invented(t, base, 1e-9)
	of := func(overrides ...string) *Time {
		t.Helper()
		got, err := TimeOf(timed(t, overrides...), device.Null{}, p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	plain := of()
	again := of("memory.recompute=every_layer")
	forward, backward := train.Forward.String(), train.Backward.String()
	if more := again.Phases[backward] - plain.Phases[backward]; more < 0.2*plain.Phases[forward] {
		t.Errorf("recomputing every layer adds %v s to backward, and forward takes %v", more, plain.Phases[forward])
	}
	if twice := of("train.batch_tokens=1024"); math.Abs(twice.Phases[forward]/plain.Phases[forward]-2) > 1e-6 {
		t.Errorf("twice the micro-batches take %v times as long", twice.Phases[forward]/plain.Phases[forward])
	}
	if short := of("train.minutes=0.001"); math.Abs(short.Seconds-0.06) > 1e-9 && short.Seconds != plain.Seconds {
		t.Errorf("0.001 minutes take %v s", short.Seconds)
	}
}

// A kernel of which nothing is known makes no time, but an error.
func TestTimeOfUnknownKernelsIsAnError(t *testing.T) {
	p := invented(t, timed(t), 1e-9)
	_, err := TimeOf(timed(t, "precision=fp32"), device.Null{}, p)
	if err == nil || !strings.Contains(err.Error(), "no kernel like MatMul") {
		t.Errorf("%v", err)
	}
}
