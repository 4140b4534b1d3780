package run

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/device"
	"anneal/device/devicetest"
	"anneal/prepare/synth"
	"anneal/train"
	"anneal/train/traintest"
)

// farDevice makes device=cuda a device as far from the host as one can be, until the test ends. Each that is opened
// fails at a kernel call if the number returned is set, and has that many bytes free.
func farDevice(t *testing.T) *devicetest.Device {
	t.Helper()
	like := &devicetest.Device{}
	before := train.Devices["cuda"]
	train.Devices["cuda"] = func(int, int) (device.Device, error) {
		d, err := devicetest.New(2)
		if err == nil {
			d.Free, d.FailAt = like.Free, like.FailAt
			d.OnClose = func() { like.Calls = d.Calls }
		}
		return d, err
	}
	t.Cleanup(func() { train.Devices["cuda"] = before })
	return like
}

// sameRun fails the test unless two runs came to the same end, bit for bit.
func sameRun(t *testing.T, what string, got, want *Result) {
	t.Helper()
	if got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash {
		t.Errorf("%s: weights or state are not those of the CPU", what)
	}
	for _, x := range [][2]float64{
		{got.TrainLoss, want.TrainLoss}, {got.ValLoss, want.ValLoss}, {got.ValLossEMA, want.ValLossEMA},
		{got.NoiseScale, want.NoiseScale},
	} {
		if math.Float64bits(x[0]) != math.Float64bits(x[1]) {
			t.Errorf("%s: losses or noise scale are %v, on the CPU %v", what, x[0], x[1])
		}
	}
}

// A run on a device with memory of its own that works as late as it may, stopped and resumed, is the run on the CPU:
// nothing touches device memory from the host, nothing is read before it is there, nothing is overwritten while it is
// needed.
func TestARunOnADeviceApartIsTheRunOnTheCPU(t *testing.T) {
	farDevice(t)
	data := traintest.Data(t)
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"bf16", []string{"average.ema=0.9", "train.noise_scale_every=2", "train.z_loss=1e-4"}},
		{"fp64", []string{"precision=fp64"}},
		{"fp16, recomputed", []string{"precision=fp16", "memory.recompute=every_layer"}},
		{"fp8 delayed", []string{"precision=fp8", "fp8.scaling=delayed", "fp8.history=4"}},
		{"fp8", []string{"precision=fp8", "model.init=small"}},
		{"bf16_sr, adam8bit", []string{"precision=bf16_sr", "optimizer.name=adam8bit"}},
		{"muon", []string{"optimizer.name=muon", "optimizer.normuon=true", "model.mup=true", "model.mup_base_dim=16",
			"optimizer.muon_scale=spectral_mup"}},
		{"sophia", []string{"optimizer.name=sophia", "optimizer.hessian_every=2"}},
		{"adafactor, windows, lengths", []string{"optimizer.name=adafactor", "model.attention=window:8",
			"train.length_warmup=16 over 2", "data.document_mask=true"}},
		{"gpt2, dropout", []string{"model.family=gpt2", "model.activation=gelu", "model.dropout=0.1",
			"model.stochastic_depth=0.2", "optimizer.name=lion"}},
		{"anneal", []string{"model.family=anneal", "optimizer.name=ademamix"}},
		{"gemma3", []string{"model.family=gemma3", "model.attention=window:8,full", "model.logit_softcap=20"}},
		{"experts, muon", []string{"model.family=qwen3_moe", "model.shared_expert_ffn=16", "model.router_z_loss=1e-3",
			"optimizer.name=muon"}},
		{"linear, packed", []string{"model.attention=linear:gated,full", "model.positions=none,alibi",
			"data.packing=best_fit", "data.document_mask=true", "optimizer.name=sgd", "optimizer.momentum=0.9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := append([]string{"train.steps=6", "schedule.warmup=1", "train.micro_batch=4", "train.eval_every=3",
				"train.eval_tokens=256", "checkpoint.every=3"}, c.set...)
			dir := t.TempDir()
			want := mustRun(t, Options{Config: smallConfig(t, data, set...), Dir: filepath.Join(dir, "cpu")})
			far := append(set, "device=cuda")
			sameRun(t, "in one go",
				mustRun(t, Options{Config: smallConfig(t, data, far...), Dir: filepath.Join(dir, "far")}), want)
			stopped := Options{Config: smallConfig(t, data, far...), Dir: filepath.Join(dir, "stopped")}
			ctx, cancel := context.WithCancel(context.Background())
			stopped.OnProgress = func(p train.Event) {
				if p.Step == 4 {
					cancel()
				}
			}
			if r, err := Run(ctx, stopped); err != nil || !r.Interrupted {
				t.Fatalf("not stopped: %v, %v", r, err)
			}
			var warnings []string
			resumed, err := Resume(context.Background(), Options{
				Dir: stopped.Dir, Device: "cpu", Warn: func(s string) { warnings = append(warnings, s) },
			})
			if err != nil {
				t.Fatal(err)
			}
			sameRun(t, "resumed on the CPU", resumed, want)
			if !slices.ContainsFunc(warnings,
				func(s string) bool { return strings.Contains(s, "trained with test kernels") }) {
				t.Errorf("going on with other kernels is no warning: %q", warnings)
			}
		})
	}
}

// Where prompts are not trained on, which tokens have a target goes to the device with every micro-batch.
func TestMaskedPromptsOnADeviceApart(t *testing.T) {
	farDevice(t)
	data := filepath.Join(t.TempDir(), "sums")
	text, err := synth.Addition{Digits: 3, Train: 400, Val: 60, Seed: 1}.Text()
	if err == nil {
		_, err = text.Build(t.Context(), data, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, precision := range []string{"fp32", "bf16", "fp64"} {
		set := []string{"precision=" + precision, "data.packing=pad", "model.context=16", "train.steps=5",
			"schedule.warmup=1", "train.batch_tokens=512", "train.micro_batch=8", "train.eval_every=2",
			"train.eval_answers=true", "train.eval_tokens=256", "train.z_loss=1e-4"}
		dir := t.TempDir()
		want := mustRun(t, Options{Config: smallConfig(t, data, set...), Dir: filepath.Join(dir, "cpu")})
		far := smallConfig(t, data, append(set, "device=cuda")...)
		sameRun(t, precision, mustRun(t, Options{Config: far, Dir: filepath.Join(dir, "far")}), want)
	}
}

// Domains are weighed by a reference in the same device's memory.
func TestGroupDROOnADeviceApart(t *testing.T) {
	farDevice(t)
	p := newProxy(t, 6)
	want := mustRun(t, Options{Config: p.cfg.Clone(), Dir: p.dir + "-cpu", DRO: &p.dro})
	p.cfg.Device = "cuda"
	got := mustRun(t, Options{Config: p.cfg, Dir: p.dir, DRO: &p.dro})
	sameRun(t, "proxy", got, want)
	if !slices.Equal(got.DomainWeights, want.DomainWeights) {
		t.Errorf("weights %v, on the CPU %v", got.DomainWeights, want.DomainWeights)
	}
}

// Wherever a device is lost, the run ends with one error that says so; no step since is in the metrics, and the run
// goes on from its last checkpoint to the same end.
func TestALostDeviceLeavesTheLastCheckpoint(t *testing.T) {
	for _, family := range []string{"llama", "qwen3_moe"} { // experts read numbers back in the middle of a step
		t.Run(family, func(t *testing.T) { checkLostDevices(t, "model.family="+family) })
	}
}

func checkLostDevices(t *testing.T, set ...string) {
	like := farDevice(t)
	data := traintest.Data(t)
	set = append(set, "device=cuda", "train.steps=4", "schedule.warmup=1", "checkpoint.every=1", "train.eval_every=2",
		"train.eval_tokens=256", "average.ema=0.9")
	whole := filepath.Join(t.TempDir(), "run")
	want, lines := mustRun(t, Options{Config: smallConfig(t, data, set...), Dir: whole}), map[any]map[string]any{}
	for _, line := range readMetrics(t, whole) {
		lines[line["step"]] = line
	}
	calls := like.Calls
	for i := range 16 {
		like.FailAt = 1 + i*calls/16
		dir := filepath.Join(t.TempDir(), "run")
		r, err := Run(context.Background(), Options{Config: smallConfig(t, data, set...), Dir: dir})
		if err == nil {
			t.Fatalf("lost at call %d of %d, the run ends with %v", like.FailAt, calls, r)
		}
		if !errors.Is(err, devicetest.ErrLost) || strings.Count(err.Error(), "was lost") != 1 ||
			Exists(dir) && !strings.Contains(err.Error(), "continue from that checkpoint with `anneal resume "+dir) {
			t.Errorf("lost at call %d of %d: %v", like.FailAt, calls, err)
		}
		like.FailAt = 0
		if !Exists(dir) { // lost before the first step
			continue
		}
		for _, line := range readMetrics(t, dir) {
			for _, key := range []string{"loss", "grad_norm", "val_loss", "val_loss_ema"} {
				if value, known := line[key]; known && value != lines[line["step"]][key] {
					t.Errorf("lost at call %d of %d: step %v has the %s %v",
						like.FailAt, calls, line["step"], key, line[key])
				}
			}
		}
		if entries, err := checkpoint.List(filepath.Join(dir, "checkpoints")); err != nil {
			t.Error(err)
		} else if len(entries) > 0 && entries[0].Err != nil {
			t.Error(entries[0].Err)
		}
		again, err := Resume(context.Background(), Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		sameRun(t, "resumed", again, want)
	}
}

// A run that does not fit the device's memory is refused, however much the host has.
func TestDeviceMemoryIsChecked(t *testing.T) {
	like := farDevice(t)
	like.Free = 65 << 20
	data := traintest.Data(t)
	_, err := Run(context.Background(), Options{
		Config: with(t, data, "device=cuda", "model.dim=512", "model.heads=8"), Dir: filepath.Join(t.TempDir(), "run"),
	})
	if large := (*train.MemoryError)(nil); !errors.As(err, &large) || large.Available != like.Free {
		t.Errorf("a run larger than the device's memory gives %v", err)
	}
}
