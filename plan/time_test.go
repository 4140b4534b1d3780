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
	rec, err := train.RecordStep(cfg, device.Null{}, comm.Alone{}, nil)
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
	got, err := TimeOf(cfg, device.Null{}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, phases := 0.0, 0.0
	for _, k := range got.Kernels {
		want += k.Count * (1e-9 + k.Bytes*1e-9)
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
		got, err := TimeOf(timed(t, overrides...), device.Null{}, p, nil)
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

// Attention to documents of a quarter of a row takes about a quarter of the time of whole rows, and nothing else
// changes.
func TestTimeOfDocuments(t *testing.T) {
	cfg := timed(t)
	p := invented(t, cfg, 1e-9)
	starts := make([]int32, cfg.Model.Context)
	for i := range starts {
		starts[i] = int32(i / 16 * 16)
	}
	of := func(d Documents) (attention, rest float64) {
		got, err := TimeOf(cfg, device.Null{}, p, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range got.Kernels {
			if strings.HasPrefix(k.Kernel, "Attention") {
				attention += k.Ops * k.Count
			} else {
				rest += k.Seconds
			}
		}
		return attention, rest
	}
	whole, others := of(nil)
	parts, same := of(Documents{starts})
	want := (4. * 16 * 17 / 2) / (64 * 65 / 2)
	if math.Abs(parts/whole-want) > 1e-9 ||
		math.Abs(same-others) > 1e-9*others {
		t.Errorf("attention is %v of that to whole rows, want %v; the rest is %v and %v",
			parts/whole, want, same, others)
	}
	if got := (Documents{starts}).Pairs(32); got != 2*16*17/2 {
		t.Errorf("rows of half the length have %v pairs", got)
	}
	if got := (Documents{starts}).Pairs(8); got != 8*9/2 {
		t.Errorf("rows shorter than documents have %v pairs", got)
	}
}

// A kernel of which nothing is known makes no time, but an error.
func TestTimeOfUnknownKernelsIsAnError(t *testing.T) {
	p := invented(t, timed(t), 1e-9)
	_, err := TimeOf(timed(t, "precision=fp32"), device.Null{}, p, nil)
	if err == nil || !strings.Contains(err.Error(), "no kernel like MatMul") {
		t.Errorf("%v", err)
	}
}

// The step of a pipeline comes from the simulation of its instructions: with stages of equal work, bubbles take the
// share that the formula gives, and more micro-batches make it smaller.
func TestTimeOfAPipelineHasItsBubbles(t *testing.T) {
	base := timed(t)
	p := invented(t, base, 1e-9)
	of := func(overrides ...string) *Time {
		t.Helper()
		got, err := TimeOf(timed(t, append(overrides, "parallel.ranks=2", "parallel.pipeline=2", "threads=2")...),
			device.Null{}, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	few, many := of("train.batch_tokens=256"), of("train.batch_tokens=2048")
	if !(few.Idle > 1.5*many.Idle) || many.Idle <= 0 || few.Idle >= 0.7 {
		t.Errorf("stages are idle for %.2f of a step of 2 micro-batches, and %.2f of 16", few.Idle, many.Idle)
	}
	busy := 0.0
	for _, s := range many.Phases {
		busy += s
	}
	if many.Step <= busy || many.Step > 2*busy {
		t.Errorf("a step takes %v s, its stages compute for %v", many.Step, busy)
	}
	chunks := of("train.batch_tokens=1024", "model.layers=4", "parallel.schedule=interleaved:2")
	if chunks.Step <= 0 || chunks.Idle <= 0 {
		t.Errorf("interleaved: %+v", chunks)
	}
}
