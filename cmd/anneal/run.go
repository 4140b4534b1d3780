package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"anneal/lab"
	"anneal/train"
	"anneal/train/config"
)

// header says what is about to run, and what it is planned to take; the plan comes back for comparison.
func (s *session) header(cfg *config.Config) (*lab.Foresight, error) {
	plan, err := lab.Foresee(cfg)
	if err != nil {
		return nil, err
	}
	if plan.Absent != nil {
		return nil, plan.Absent
	}
	s.notef("anneal %s  %s %.1fM params · %s (%s) · %s tokens/step · plan: %s", version, cfg.Model.Family,
		float64(plan.Parameters)/1e6, strings.ToUpper(cfg.Precision), plan.Device, stepTokens(cfg), mebibytes(plan.Bytes))
	if plan.Mix != nil {
		for _, line := range mixTable(plan.Mix) {
			s.notef("  %s", line)
		}
	}
	for _, remark := range plan.Remarks() {
		s.notef("%s", remark)
	}
	return plan, nil
}

// stepTokens says how many tokens a step has, or from how many to how many it grows.
func stepTokens(cfg *config.Config) string {
	full := thousands(int64(cfg.Train.BatchTokens))
	if ramp, err := cfg.BatchRamp(); err == nil && ramp.Batch(0) != ramp.Full {
		return thousands(int64(ramp.Batch(0))) + " to " + full
	}
	return full
}

// trainProgress returns what shows a run's steps. Lines with an evaluation stay on the screen; on a terminal the line of
// the present step is rewritten; elsewhere there is a line every so many steps, or, if that is 0, every ten seconds.
func (s *session) trainProgress(every int) func(train.Progress) {
	return func(p train.Progress) {
		line := func(columns int) string { return stepLine(p, columns) }
		switch {
		case !math.IsNaN(p.ValLoss):
			s.status.keep(line(0))
		case every > 0 && p.Step%every == 0 && !s.status.rewrites():
			s.status.keep(line(0))
		default:
			s.status.update(line)
		}
	}
}

// stepLine is a step for people, such as
//
//	step  840/2400   35%  loss 1.947  val 1.310 bits/byte  lr 9.1e-04  |g| 0.62  7,940 tok/s  71% of peak  ETA 2m03s
//
// Where there are fewer columns (0 is no limit) the parts that matter least are left out.
func stepLine(p train.Progress, columns int) string {
	total := fmt.Sprint(p.Steps)
	line := fit{columns: columns}
	line.add(0, "step %*d/%s  %3d%%", len(total), p.Step, total, 100*p.Step/max(p.Steps, 1))
	line.add(0, "loss %.3f", p.Loss)
	if !math.IsNaN(p.ValBitsPerByte) {
		line.add(1, "val %.3f bits/byte", p.ValBitsPerByte)
	}
	if len(p.ValSources) > 0 {
		parts := make([]string, len(p.ValSources))
		for i, x := range p.ValSources {
			parts[i] = fmt.Sprintf("%s %.3f", x.Name, x.BitsPerByte)
		}
		line.add(3, "(%s)", strings.Join(parts, ", "))
	}
	if p.ValBitsPerByteEMA > 0 {
		line.add(1, "ema %.3f", p.ValBitsPerByteEMA)
	}
	if p.DomainWeights != nil {
		line.add(1, "weights %.2f", p.DomainWeights)
	}
	line.add(4, "lr %.1e", p.LR)
	line.add(4, "|g| %.2f", p.GradNorm)
	if p.ClipRate > 0 {
		line.add(5, "%.0f%% clipped", 100*p.ClipRate)
	}
	if !math.IsNaN(p.TokensPerSecond) {
		line.add(2, "%s tok/s", thousands(int64(p.TokensPerSecond)))
	}
	if p.FractionOfPeak > 0 {
		line.add(3, "%.0f%% of peak", 100*p.FractionOfPeak)
	}
	if p.Skipped > 0 {
		line.add(1, "%d skipped", p.Skipped)
	}
	if p.ETA > 0 && p.ETA < 10000*time.Hour {
		line.add(0, "ETA %s", clock(p.ETA))
	}
	return line.String()
}

// fit is a line made of parts, of which those of the highest rank go first when columns run out.
type fit struct {
	columns int
	parts   []string
	ranks   []int
}

func (f *fit) add(rank int, format string, args ...any) {
	f.parts, f.ranks = append(f.parts, fmt.Sprintf(format, args...)), append(f.ranks, rank)
}

func (f *fit) String() string {
	line := strings.Join(f.parts, "  ")
	for f.columns > 0 && utf8.RuneCountInString(line) >= f.columns {
		worst := slices.Max(f.ranks)
		if worst == 0 {
			break
		}
		i := slices.Index(f.ranks, worst)
		f.parts, f.ranks = slices.Delete(f.parts, i, i+1), slices.Delete(f.ranks, i, i+1)
		line = strings.Join(f.parts, "  ")
	}
	return line
}

// finishRun prints how a run ended, beside the plan if there was one. If a signal ended it, the error says how to go on.
func (s *session) finishRun(r *train.Result, dir string, plan *lab.Foresight) error {
	s.printf("%s steps, %s tokens, %s parameters", thousands(int64(r.Step)), thousands(r.Tokens), thousands(r.Parameters))
	if math.IsNaN(r.TokensPerSecond) {
		s.printf("; no step was made now\n")
	} else {
		s.printf(", %s tok/s\n", thousands(int64(r.TokensPerSecond)))
	}
	if math.IsNaN(r.TrainLoss) {
		s.printf("train loss unknown")
	} else {
		s.printf("train loss %.4f", r.TrainLoss)
	}
	if !math.IsNaN(r.ValBitsPerByte) {
		s.printf("  validation loss %.4f, %.4f bits/byte", r.ValLoss, r.ValBitsPerByte)
	}
	if !math.IsNaN(r.ValBitsPerByteEMA) {
		s.printf(" (of the weights' average %.4f)", r.ValBitsPerByteEMA)
	}
	if r.ClipRate > 0 {
		s.printf("  %.1f%% of updates clipped", 100*r.ClipRate)
	}
	if !math.IsNaN(r.NoiseScale) {
		s.printf("\ngradient noise scale %s tokens: much smaller steps waste time, much larger ones tokens", thousands(int64(r.NoiseScale)))
	}
	s.printf("\nweights %.16s…\n", r.WeightsHash)
	s.printSources(r)
	arenas, bytes := make([]string, 0, len(r.Arenas)), map[string]int64{}
	for _, a := range r.Arenas {
		arenas = append(arenas, fmt.Sprintf("%s %s", a.Name, mebibytes(a.Peak)))
		bytes[a.Name] = a.Peak
	}
	if r.DeviceMemory > 0 {
		s.printf("memory of the host %s\n", mebibytes(r.PeakRSS))
	}
	s.printf("peak memory %s", mebibytes(cmp.Or(r.DeviceMemory, r.PeakRSS)))
	if plan != nil {
		s.printf(" (planned %s)", mebibytes(plan.Bytes))
	}
	s.printf(": %s\n", strings.Join(arenas, ", "))
	result := map[string]any{
		"step": r.Step, "steps": r.Step, "tokens": r.Tokens, "parameters": r.Parameters, "tokens_per_second": number(r.TokensPerSecond),
		"train_loss": number(r.TrainLoss), "val_loss": number(r.ValLoss), "val_bits_per_byte": number(r.ValBitsPerByte), "noise_scale_tokens": number(r.NoiseScale),
		"clip_rate": number(r.ClipRate), "weights_hash": r.WeightsHash, "optimizer_hash": r.OptimizerHash, "interrupted": r.Interrupted,
		"peak_rss_bytes": r.PeakRSS, "device_memory_bytes": r.DeviceMemory, "arena_bytes": bytes, "run": dir,
	}
	if !math.IsNaN(r.ValBitsPerByteEMA) {
		result["val_loss_ema"], result["val_bits_per_byte_ema"] = r.ValLossEMA, r.ValBitsPerByteEMA
	}
	if r.SourceTokens != nil {
		result["source_tokens"], result["source_validation"] = r.SourceTokens, r.ValSources
	}
	if plan != nil {
		result["planned_bytes"] = plan.Bytes
	}
	err := s.emit(result)
	if err == nil && r.Interrupted {
		return &stopped{fmt.Sprintf("stopped at step %d; its state is saved\n  go on with `anneal resume %s`", r.Step, dir)}
	}
	return err
}

// printSources says what a run has read of each source of a mix, and how well it predicts each.
func (s *session) printSources(r *train.Result) {
	bits := map[string]string{}
	for _, x := range r.ValSources {
		bits[x.Name] = fmt.Sprintf(", %.4f bits/byte", x.BitsPerByte)
	}
	for _, name := range slices.Sorted(maps.Keys(r.SourceTokens)) {
		s.printf("  %s: %s tokens read%s\n", name, thousands(r.SourceTokens[name]), bits[name])
	}
}

func (s *session) warn(text string) { s.notef("warning: %s", text) }
