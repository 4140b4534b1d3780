//go:build cuda && linux

package run

import (
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// Whatever the optimizer and the recipe, a run on a GPU is the run on the CPU: in the reference mode to the digits of
// float64, and else as close as sums in another order are in the format.
func TestEveryOptimizerAndFamilyOnAGPU(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	for _, c := range []struct {
		name      string
		precision string
		set       []string
	}{
		{"adamw", "fp64", []string{"optimizer.cautious_decay=true"}},
		{"adam", "fp64", []string{"optimizer.name=adam", "optimizer.weight_decay=0.1"}},
		{"adam8bit", "fp64", []string{"optimizer.name=adam8bit"}},
		{"sgd", "fp64", []string{"optimizer.name=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true"}},
		{"lion", "fp64", []string{"optimizer.name=lion"}},
		{"ademamix", "fp64", []string{"optimizer.name=ademamix"}},
		{"adafactor", "fp64", []string{"optimizer.name=adafactor"}},
		{"adafactor, palm", "fp64", []string{"optimizer.name=adafactor", "optimizer.variant=palm"}},
		{"muon", "fp64", []string{"optimizer.name=muon"}},
		{"adamw, moments", "fp32", []string{"optimizer.moments=bf16"}},
		{"soap", "fp64", []string{"optimizer.name=soap", "optimizer.basis_every=2"}},
		{"schedulefree", "fp64", []string{"optimizer.name=schedulefree"}},
		{"sophia", "fp64", []string{"optimizer.name=sophia", "optimizer.hessian_every=2"}},
		{"anneal", "fp32", []string{"model.family=anneal", "optimizer.name=muon", "optimizer.normuon=true",
			"model.bigram=50", "model.smear=true"}},
		{"anneal", "bf16", []string{"model.family=anneal", "optimizer.name=muon", "optimizer.normuon=true"}},
		{"gemma2", "bf16", []string{"model.family=gemma2", "model.attention=window:8,full", "model.attention_softcap=5",
			"memory.recompute=every_layer", "memory.recompute_inputs=bf16"}},
		{"sinks", "fp64", []string{"model.attention_sinks=true", "model.qkv_bias=true"}},
		{"gemma3", "fp64", []string{"model.family=gemma3", "model.attention=window:8,full", "model.logit_softcap=20"}},
		{"experts", "fp64", []string{"model.family=qwen3_moe", "model.shared_expert_ffn=16",
			"model.router_z_loss=1e-3"}},
		{"experts", "fp32", []string{"model.family=qwen3_moe", "optimizer.name=muon"}},
		{"linear", "bf16", []string{"model.attention=linear:gated", "model.positions=none", "data.document_mask=true",
			"model.short_conv=4"}},
		{"global tokens", "fp64", []string{"model.attention=longformer:8:3", "model.longformer_global_projections=true",
			"data.document_mask=true", "model.qk_norm=true"}},
		{"gpt2", "fp16", []string{"model.family=gpt2", "model.dropout=0.1"}},
		{"windows", "bf16_sr", []string{"model.attention=window:8", "optimizer.name=adam8bit"}},
	} {
		t.Run(c.name+" "+c.precision, func(t *testing.T) {
			set := append([]string{"precision=" + c.precision}, c.set...)
			dir := t.TempDir()
			want := mustRun(t, Options{Config: smallConfig(t, data, set...), Dir: filepath.Join(dir, "cpu")})
			got := mustRun(t, Options{
				Config: smallConfig(t, data, append(set, "device=cuda")...), Dir: filepath.Join(dir, "cuda"),
			})
			near := map[string]float64{"fp64": 1e-12, "fp32": 1e-6, "fp16": 1e-4, "bf16": 1e-3, "bf16_sr": 1e-3,
				"fp8": 2e-3}[c.precision]
			t.Logf("train %v %v, val %v %v", got.TrainLoss, want.TrainLoss, got.ValLoss, want.ValLoss)
			for _, x := range [][2]float64{{got.TrainLoss, want.TrainLoss}, {got.ValLoss, want.ValLoss}} {
				if !(math.Abs(x[0]-x[1]) <= near*x[1]) {
					t.Errorf("losses in training and validation are %v and %v, on the CPU %v and %v",
						got.TrainLoss, got.ValLoss, want.TrainLoss, want.ValLoss)
					break
				}
			}
		})
	}
}

// A recipe with all that others lack has the same bits each time, and after a stop.
func TestARecipeOnAGPUResumesBitForBit(t *testing.T) {
	emulatedCard(t)
	data := traintest.Data(t)
	cfg := func() *config.Config {
		return smallConfig(t, data, "device=cuda", "precision=bf16", "model.family=anneal",
			"model.attention=linear:gated,full", "optimizer.name=adam8bit", "checkpoint.every=2", "checkpoint.keep=9")
	}
	dir := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: cfg(), Dir: dir})
	sameRun(t, "resumed", resumedAt(t, dir, 2), want)
	sameRun(t, "run again", mustRun(t, Options{Config: cfg(), Dir: filepath.Join(t.TempDir(), "run")}), want)
}
