package sinks

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"anneal/train"
)

// A value is a number with the tag under which TensorBoard and trackio show it.
type value struct {
	tag string
	x   float64
}

// values returns the numbers of a step. Unknown numbers are left out, except a loss that is NaN.
func values(s Step) (list []value) {
	e := s.Event
	add, positive := adders(&list)
	if e.Targets > 0 {
		list = append(list, value{"train/loss", e.Loss}, value{"train/grad_norm", e.GradNorm})
	}
	add("train/lr", e.LR)
	add("train/tokens", float64(e.Tokens))
	positive("train/skips", float64(e.Skips))
	positive("train/clip_rate", e.ClipRate)
	positive("train/clip_rate_recent", e.ClipRateRecent)
	positive("train/loss_scale", e.LossScale)
	positive("train/z_loss", e.ZLoss)
	positive("train/teacher_kl", e.TeacherKL)
	positive("train/router_balance", e.RouterBalance)
	positive("train/noise_scale_tokens", e.NoiseScale)
	for l, norm := range e.GradNorms.Layers {
		add(fmt.Sprintf("grad_norm/layer_%02d", l), float64(norm))
	}
	for _, group := range slices.Sorted(maps.Keys(e.GradNorms.Groups)) {
		add("grad_norm/"+group, float64(e.GradNorms.Groups[group]))
	}
	for l, ratio := range e.UpdateRatios.Layers {
		add(fmt.Sprintf("update_ratio/layer_%02d", l), float64(ratio))
	}
	for _, group := range slices.Sorted(maps.Keys(e.UpdateRatios.Groups)) {
		add("update_ratio/"+group, float64(e.UpdateRatios.Groups[group]))
	}
	for _, name := range slices.Sorted(maps.Keys(e.SourceLoss)) {
		add("source_loss/"+name, float64(e.SourceLoss[name]))
	}
	if e.Evaluated() {
		list = append(list, evaluation(e.Evaluation)...)
	}
	add("perf/tokens_per_second", e.TokensPerSecond)
	positive("perf/fraction_of_peak", e.FractionOfPeak)
	positive("perf/step_seconds", s.Took.Seconds())
	for p, spent := range s.Phases {
		positive("perf/"+train.Phase(p).String()+"_seconds", spent.Seconds())
	}
	positive("perf/save_seconds", e.SaveSeconds)
	positive("mem/resident_bytes", float64(e.RSSBytes))
	return list
}

// evaluation returns the numbers of an evaluation. Unknown numbers are left out.
func evaluation(e train.Evaluation) (list []value) {
	add, positive := adders(&list)
	add("val/loss", e.ValLoss)
	add("val/bits_per_byte", e.ValBitsPerByte)
	positive("val/loss_ema", e.ValLossEMA)
	positive("val/bits_per_byte_ema", e.ValBitsPerByteEMA)
	add("val/accuracy", e.ValAccuracy)
	add("val/exact", e.ValExact)
	for l, size := range e.ActivationRMS {
		add(fmt.Sprintf("activation_rms/layer_%02d", l), float64(size))
	}
	for _, r := range e.ValSources {
		add("val_bits_per_byte/"+r.Name, float64(r.BitsPerByte))
	}
	return list
}

// adders returns functions that add a number to a list if it is known, or if it is above 0.
func adders(list *[]value) (add, positive func(tag string, x float64)) {
	add = func(tag string, x float64) {
		if !math.IsNaN(x) {
			*list = append(*list, value{tag, x})
		}
	}
	positive = func(tag string, x float64) {
		if x > 0 {
			add(tag, x)
		}
	}
	return add, positive
}
