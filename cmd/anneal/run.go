package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"anneal/device/cpu/isa"
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
	tier, err := isa.Choose()
	if err != nil {
		return nil, &usageError{err.Error(), "try `unset ANNEAL_CPU`"}
	}
	threads := cfg.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	s.notef("anneal %s  %s %.1fM params · %s (%s, %d threads) · %s tokens/step · plan: %s", version, cfg.Model.Family,
		float64(plan.Parameters)/1e6, strings.ToUpper(cfg.Precision), tier, threads, thousands(int64(cfg.Train.BatchTokens)), mebibytes(plan.Bytes))
	return plan, nil
}

// trainProgress returns what shows a run's steps. Lines with an evaluation stay on the screen; on a terminal the line of
// the present step is rewritten; elsewhere there is a line every so many steps, and every ten seconds at most if that is 0.
func (s *session) trainProgress(every int) func(train.Progress) {
	return func(p train.Progress) {
		line := func() string { return stepLine(p) }
		switch {
		case !math.IsNaN(p.ValLoss):
			s.status.keep(line())
		case every > 0 && p.Step%every == 0 && !s.status.rewrites():
			s.status.keep(line())
		default:
			s.status.update(line)
		}
	}
}

// stepLine is a step for people, such as
//
//	step   840/2400  35%  loss 1.947  val 1.310 bits/byte  lr 9.1e-04  |g| 0.62  7,940 tok/s  71% of peak  ETA 2m03s
func stepLine(p train.Progress) string {
	total := fmt.Sprint(p.Steps)
	var b strings.Builder
	fmt.Fprintf(&b, "step %*d/%s  %3d%%  loss %.3f", len(total), p.Step, total, 100*p.Step/max(p.Steps, 1), p.Loss)
	if !math.IsNaN(p.ValBitsPerByte) {
		fmt.Fprintf(&b, "  val %.3f bits/byte", p.ValBitsPerByte)
	}
	fmt.Fprintf(&b, "  lr %.1e  |g| %.2f  %s tok/s", p.LR, p.GradNorm, thousands(int64(p.TokensPerSecond)))
	if p.FractionOfPeak > 0 {
		fmt.Fprintf(&b, "  %.0f%% of peak", 100*p.FractionOfPeak)
	}
	if p.Skipped > 0 {
		fmt.Fprintf(&b, "  %d skipped", p.Skipped)
	}
	if p.ETA > 0 && p.ETA < 10000*time.Hour {
		fmt.Fprintf(&b, "  ETA %s", clock(p.ETA))
	}
	return b.String()
}

// finishRun prints how a run ended, beside the plan if there was one. A run that a signal ended is told how to go on, and exits with exitStopped.
func (s *session) finishRun(r *train.Result, dir string, plan *lab.Foresight) error {
	s.printf("%s steps, %s tokens, %s parameters, %s tok/s\n",
		thousands(int64(r.Step)), thousands(r.Tokens), thousands(r.Parameters), thousands(int64(r.TokensPerSecond)))
	s.printf("train loss %.4f", r.TrainLoss)
	if !math.IsNaN(r.ValBitsPerByte) {
		s.printf("  validation loss %.4f, %.4f bits/byte", r.ValLoss, r.ValBitsPerByte)
	}
	s.printf("\nweights %.16s…\n", r.WeightsHash)
	arenas, bytes := make([]string, 0, len(r.Arenas)), map[string]int64{}
	for _, a := range r.Arenas {
		arenas = append(arenas, fmt.Sprintf("%s %s", a.Name, mebibytes(a.Peak)))
		bytes[a.Name] = a.Peak
	}
	s.printf("peak memory %s", mebibytes(r.PeakRSS))
	var planned int64
	if plan != nil {
		planned = plan.Bytes
		s.printf(" (planned %s)", mebibytes(planned))
	}
	s.printf(": %s\n", strings.Join(arenas, ", "))
	err := s.emit(map[string]any{
		"step": r.Step, "steps": r.Step, "tokens": r.Tokens, "parameters": r.Parameters, "tokens_per_second": number(r.TokensPerSecond),
		"train_loss": number(r.TrainLoss), "val_loss": number(r.ValLoss), "val_bits_per_byte": number(r.ValBitsPerByte),
		"weights_hash": r.WeightsHash, "optimizer_hash": r.OptimizerHash, "interrupted": r.Interrupted,
		"peak_rss_bytes": r.PeakRSS, "planned_bytes": planned, "arena_bytes": bytes, "run": dir,
	})
	if err == nil && r.Interrupted {
		return &stopped{fmt.Sprintf("stopped at step %d; its state is saved\n  go on with `anneal resume %s`", r.Step, dir)}
	}
	return err
}

func (s *session) warn(text string) { s.notef("warning: %s", text) }
