package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/internal/units"
	"anneal/plan"
	"anneal/run"
)

// finished holds what a command knows about a run that it trained, in addition to its result.
type finished struct {
	dir     string          // of the run
	plan    *plan.Foresight // that was printed before it; may be nil
	elapsed time.Duration   // of the command
	next    string          // the command to type next
}

// finishRun prints how a run ended, one fact a line, compared with its plan. If a signal ended it, the error says how
// to continue.
func (s *session) finishRun(r *run.Result, f finished) error {
	s.factsOfSpeed(r)
	s.factsOfLoss(r)
	s.factsOfMemory(r, f.plan)
	if text := s.energyFact(); text != "" {
		s.fact("energy", "%s", text)
	}
	if !r.Interrupted && r.Step < r.Steps {
		s.fact("ended by", "train.minutes, after %s of %s steps; `%s` goes on for as long again",
			units.Commas(r.Step), units.Commas(r.Steps), command("anneal", "resume", f.dir))
	}
	if !r.Interrupted {
		s.closing("a run of "+units.Count(r.Step, "step"), f.dir, f.elapsed, f.next)
	}
	s.trained = f.dir
	result := finishedJSON(r, f)
	if joules := s.energy.Joules(); !math.IsNaN(joules) {
		result["energy_joules"] = joules
	}
	if err := s.emit(result); !r.Interrupted {
		return err
	} // otherwise how to continue the run matters more than an error of standard output
	return &stopped{fmt.Sprintf("stopped at step %s after %s; its state is saved in %s\n"+
		"  to continue: `%s`",
		units.Commas(r.Step), seconds(f.elapsed), f.dir, command("anneal", "resume", f.dir))}
}

// fact prints a line about a finished run.
func (s *session) fact(name, format string, args ...any) {
	s.prosef(strings.Repeat(" ", 18), "%-17s "+format+"\n", append([]any{name}, args...)...)
}

func (s *session) factsOfSpeed(r *run.Result) {
	s.fact("steps", "%s", units.Commas(r.Step))
	rate := "no step this time"
	if !math.IsNaN(r.TokensPerSecond) {
		rate = units.Commas(int64(r.TokensPerSecond)) + " a second"
	}
	s.fact("tokens", "%s, %s", units.Commas(r.Tokens), rate)
	for i, text := range timingFacts(r.Timing) {
		s.fact([]string{"step", "  by phase"}[i], "%s", text)
	}
}

func (s *session) factsOfLoss(r *run.Result) {
	s.fact("parameters", "%s", units.Commas(r.Parameters))
	if !math.IsNaN(r.TrainLoss) {
		s.fact("training loss", "%.4f nats/token", r.TrainLoss)
	}
	if !math.IsNaN(r.ValBitsPerByte) {
		s.fact("validation loss", "%.4f nats/token, %.4f bits/byte, at step %s",
			r.ValLoss, r.ValBitsPerByte, units.Commas(r.EvalStep))
	}
	if !math.IsNaN(r.ValBitsPerByteEMA) {
		s.fact("of the average", "%.4f nats/token, %.4f bits/byte, at step %s",
			r.ValLossEMA, r.ValBitsPerByteEMA, units.Commas(r.EvalStep))
	}
	if r.Better != nil {
		s.fact("lowest", "%s", r.Better)
	}
	for _, x := range []struct {
		name            string
		accuracy, exact float64
	}{{"held-out answers", r.ValAccuracy, r.ValExact}, {"training answers", r.TrainAccuracy, r.TrainExact}} {
		switch {
		case math.IsNaN(x.accuracy):
		case math.IsNaN(x.exact):
			s.fact(x.name, "%.1f %% of tokens right; no document lies whole in a row", 100*x.accuracy)
		default:
			s.fact(x.name, "%.1f %% of tokens right, %.1f %% of documents", 100*x.accuracy, 100*x.exact)
		}
	}
	s.printSources(r)
	if r.ClipRate > 0 {
		s.fact("clipped", "%.1f %% of updates", 100*r.ClipRate)
	}
	if !math.IsNaN(r.NoiseScale) {
		s.fact("noise scale", "%s tokens: a much smaller batch wastes time, a much larger one wastes tokens",
			units.Commas(int64(r.NoiseScale)))
	}
	s.fact("weights", "%.16s…", r.WeightsHash)
}

// factsOfMemory compares the peak with the plan, which may be nil.
func (s *session) factsOfMemory(r *run.Result, p *plan.Foresight) {
	if r.DeviceMemory > 0 {
		s.fact("host memory", "%s", memorySize(r.PeakRSS))
	}
	planned := ""
	if p != nil {
		planned = fmt.Sprintf(" (planned %s)", memorySize(p.Bytes))
	}
	arenas := slices.DeleteFunc(slices.Clone(r.Arenas), func(a run.ArenaUse) bool { return a.Peak < 1<<20 })
	s.fact("peak memory", "%s%s%s", memorySize(cmp.Or(r.DeviceMemory, r.PeakRSS)), planned,
		s.ofRanks(p, len(arenas) > 0))
	for _, a := range arenas {
		s.fact("  "+a.Name, "%s", memorySize(a.Peak))
	}
}

// ofRanks says which ranks the peak memory counts in a run on several ranks, and, if parts are listed below it, whose
// parts these are.
func (s *session) ofRanks(p *plan.Foresight, parts bool) string {
	switch {
	case p == nil || p.Ranks == nil:
		return ""
	case s.world.Size() > 1:
		return " of rank 0"
	}
	text := fmt.Sprintf(" for %d ranks", p.Ranks.Count)
	if parts {
		text += "; of rank 0:"
	}
	return text
}

func finishedJSON(r *run.Result, f finished) map[string]any {
	bytes := map[string]int64{}
	for _, a := range r.Arenas {
		bytes[a.Name] = a.Peak
	}
	result := map[string]any{
		"step": r.Step, "steps": r.Step, "tokens": r.Tokens, "parameters": r.Parameters,
		"tokens_per_second": number(r.TokensPerSecond),
		"train_loss":        number(r.TrainLoss), "val_loss": number(r.ValLoss),
		"val_bits_per_byte": number(r.ValBitsPerByte), "val_step": r.EvalStep,
		"noise_scale_tokens": number(r.NoiseScale), "clip_rate": number(r.ClipRate), "weights_hash": r.WeightsHash,
		"optimizer_hash": r.OptimizerHash, "interrupted": r.Interrupted, "peak_rss_bytes": r.PeakRSS,
		"device_memory_bytes": r.DeviceMemory, "arena_bytes": bytes, "run": f.dir, "seconds": f.elapsed.Seconds(),
	}
	if r.Timing.Steps > 0 {
		result["timing"] = r.Timing
	}
	if !math.IsNaN(r.ValBitsPerByteEMA) {
		result["val_loss_ema"], result["val_bits_per_byte_ema"] = r.ValLossEMA, r.ValBitsPerByteEMA
	}
	if !math.IsNaN(r.ValAccuracy) {
		result["val_accuracy"], result["val_exact"] = number(r.ValAccuracy), number(r.ValExact)
		result["train_accuracy"], result["train_exact"] = number(r.TrainAccuracy), number(r.TrainExact)
	}
	if r.Better != nil {
		result["better"] = r.Better
	}
	if i := r.Init; i.From != "" {
		result["init_from"], result["init_step"], result["init_weights_hash"] = i.From, i.Step, i.Weights
	}
	if r.SourceTokens != nil {
		result["source_tokens"], result["source_validation"] = r.SourceTokens, r.ValSources
	}
	if f.plan != nil {
		result["planned_bytes"] = f.plan.Bytes
	}
	return result
}

// useOf suggests the next commands for a run: generate with its model, and evaluate it on its data.
func useOf(dir string, cfg *config.Config) string {
	next := command("anneal", "generate", dir)
	sources, err := cfg.Sources()
	if err != nil || !cfg.HasData() {
		return next
	}
	eval := []string{"anneal", "eval", dir}
	for _, x := range sources {
		if len(sources) > 1 {
			eval = append(eval, "--data", x.Name+"="+fromHere(x.Path))
		} else {
			eval = append(eval, "--data", fromHere(x.Path))
		}
	}
	return next + "\n      " + command(eval...)
}

// fromHere shortens a path that lies below the working directory.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

// printSources prints how much of each source of a mix a run has read, and the validation loss on each.
func (s *session) printSources(r *run.Result) {
	bits := map[string]string{}
	for _, x := range r.ValSources {
		bits[x.Name] = fmt.Sprintf(", %.4f bits/byte", x.BitsPerByte)
	}
	for _, name := range slices.Sorted(maps.Keys(r.SourceTokens)) {
		s.printf("  %s: %s tokens read%s\n", name, units.Commas(r.SourceTokens[name]), bits[name])
	}
}
