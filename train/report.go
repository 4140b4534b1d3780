package train

import (
	"context"
	"math"
	"slices"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/machine"
)

// Progress describes a run after a step.
type Progress struct {
	Step, Steps             int
	Tokens                  int64          // trained on so far
	Loss, LR, GradNorm      float64        // nats per token; peak rate times schedule; before clipping
	TokensPerSecond         float64        // over the last few seconds
	FractionOfPeak          float64        // of the machine's measured matrix product peak at the run's precision
	ValLoss, ValBitsPerByte float64        // NaN unless the model was just evaluated
	ValSources              []SourceResult // per source of a mix, if the model was just evaluated
	ValBitsPerByteEMA       float64        // of the average of the weights; NaN also without average.ema
	RSS                     int64          // bytes
	ETA                     time.Duration
	Skipped                 int       // updates not applied so far
	ClipRate                float64   // share of the updates so far whose gradient was clipped; NaN before the first
	DomainWeights           []float64 // of the step, for a run that weighs domains; else nil
}

// ArenaUse is the memory of one arena in bytes.
type ArenaUse struct {
	Name        string
	Bytes, Peak int64
}

// Result describes the end of a run.
type Result struct {
	Step                    int
	Tokens, Parameters      int64
	TokensPerSecond         float64 // over this process's steps; NaN if it made none
	TrainLoss               float64 // nats per token of the last applied step; NaN without one
	ValLoss, ValBitsPerByte float64 // of the last evaluation; NaN without a validation split
	EvalStep                int     // of the last evaluation

	ValLossEMA, ValBitsPerByteEMA float64 // of the average of the weights; NaN also without average.ema

	ValSources   []SourceResult   // of the last evaluation, per source of a mix; nil without a mix
	SourceTokens map[string]int64 // read per source of a mix; nil without a mix

	DomainWeights              []float64 // mean over the updates, for a run that weighs domains; else nil
	ClipRate                   float64   // share of the run's updates whose gradient was clipped; NaN without an update
	NoiseScale                 float64   // tokens; NaN if train.noise_scale_every is 0 or too little was measured
	WeightsHash, OptimizerHash string
	Init                       config.Init // the initial weights, if the run started from some
	Interrupted                bool        // ctx ended before the last step; the state is saved
	PeakRSS                    int64       // bytes, of the process
	DeviceMemory               int64       // bytes, peak of the device's own memory; 0 if it uses the host's
	Arenas                     []ArenaUse
}

// evaluate measures the model and stores the result. If it is interrupted, the previous result remains.
func (s *session) evaluate(ctx context.Context) (evaluation, error) {
	none := evaluation{unevaluated, unevaluated}
	s.watch.enter(evaluating)
	defer s.watch.enter(idle)
	text, err := s.corpus.HeldOut(s.cfg.Model.Context)
	if err != nil {
		return none, err
	}
	weights, err := s.trainer.evaluate(ctx, text, s.cfg.Train.EvalTokens)
	if err != nil {
		return none, err
	}
	if len(weights.Textless) > 0 && !s.warnedTextless {
		s.Warn(textlessError(weights.Textless).Error())
		s.warnedTextless = true
	}
	average, err := s.trainer.evaluateAverage(ctx, text, s.cfg.Train.EvalTokens)
	if err != nil {
		return none, err
	}
	s.last.ValLoss, s.last.ValBitsPerByte, s.last.EvalStep = number(weights.Loss), number(weights.BitsPerByte), s.trainer.progress.Step
	s.last.ValSources = weights.Sources
	s.last.ValLossEMA, s.last.ValBitsPerByteEMA = number(average.Loss), number(average.BitsPerByte)
	return evaluation{weights, average}, nil
}

// evaluation holds the results for the weights, and for their average if there is one.
type evaluation struct{ weights, average EvalResult }

// report writes the step's line of metrics and calls OnProgress.
func (s *session) report(stats StepStats, eval evaluation) {
	t := s.trainer
	rate := s.clock.rate()
	rss, _ := machine.Resident()
	fraction := math.NaN()
	if s.peak > 0 {
		fraction = s.clock.flops() / 1e9 / s.peak
	}
	line := metricsLine{
		Step: t.progress.Step, Tokens: t.progress.Tokens, Loss: number(stats.Loss), LR: stats.LR, GradNorm: number(stats.GradNorm),
		WinRate: stats.WinRate, Skipped: stats.Skipped, LossScale: t.scaleOfGradients(), TokensPerSecond: number(rate), FractionOfPeak: number(fraction), RSSBytes: rss,
	}
	if eval.weights.Tokens > 0 {
		line.ValLoss, line.ValBitsPerByte = (*number)(&eval.weights.Loss), (*number)(&eval.weights.BitsPerByte)
	}
	if eval.average.Tokens > 0 {
		line.ValLossEMA, line.ValBitsPerByteEMA = (*number)(&eval.average.Loss), (*number)(&eval.average.BitsPerByte)
	}
	if s.cfg.Train.ZLoss != 0 {
		line.ZLoss = (*number)(&stats.ZLoss)
	}
	if stats.Length < s.cfg.Model.Context {
		line.SequenceTokens = stats.Length
	}
	if !math.IsNaN(stats.NoiseScale) {
		line.NoiseScale = (*number)(&stats.NoiseScale)
	}
	clipRate := t.progress.clipRate()
	if s.cfg.Train.Clip > 0 {
		line.ClipRate = (*number)(&clipRate)
	}
	var domains []float64
	if t.robust != nil {
		domains = slices.Clone(t.robust.state.Alpha)
		line.DomainWeights, line.DomainExcess = domains, t.robust.state.Excess
	}
	s.sourceMetrics(&line, eval.weights)
	s.metrics.write(line)
	s.noteStep()
	if s.OnProgress == nil {
		return
	}
	p := Progress{
		Step: t.progress.Step, Steps: s.cfg.Train.Steps, Tokens: t.progress.Tokens, Loss: stats.Loss, LR: stats.LR, GradNorm: stats.GradNorm,
		TokensPerSecond: rate, FractionOfPeak: fraction, ValLoss: eval.weights.Loss, ValBitsPerByte: eval.weights.BitsPerByte, RSS: rss, Skipped: t.guard.Skipped,
		ClipRate: clipRate, ValBitsPerByteEMA: eval.average.BitsPerByte, DomainWeights: domains, ValSources: eval.weights.Sources,
	}
	left := float64(s.tokens-p.Tokens) / rate
	p.ETA = time.Duration(left * float64(time.Second))
	if m := s.cfg.Train.Minutes; m > 0 {
		p.ETA = max(min(p.ETA, time.Duration(m*float64(time.Minute))-time.Since(s.started)), 0)
	}
	s.OnProgress(p)
}

// result returns the Result of the run, once its state is saved.
func (s *session) result(interrupted bool) (*Result, error) {
	t := s.trainer
	weights, optimizer, err := checkpoint.HashTensors(s.tensors)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Step: t.progress.Step, Tokens: t.progress.Tokens, Parameters: t.model.Count(), TokensPerSecond: s.clock.average(),
		TrainLoss: float64(s.last.TrainLoss), ValLoss: float64(s.last.ValLoss), ValBitsPerByte: float64(s.last.ValBitsPerByte), EvalStep: s.last.EvalStep,
		ValLossEMA: float64(s.last.ValLossEMA), ValBitsPerByteEMA: float64(s.last.ValBitsPerByteEMA), ClipRate: t.progress.clipRate(),
		NoiseScale: t.progress.Noise.tokens(), WeightsHash: weights, OptimizerHash: optimizer, Interrupted: interrupted,
		ValSources: s.last.ValSources, SourceTokens: s.sourceTokens(), Init: s.cfg.Init,
	}
	if t.robust != nil {
		r.DomainWeights = t.robust.state.mean(t.progress.Updates)
	}
	_, r.PeakRSS = machine.Resident()
	for _, a := range t.arenas {
		r.Arenas = append(r.Arenas, ArenaUse{Name: a.Name(), Bytes: int64(a.Size()), Peak: int64(a.Peak())})
		if a.Apart() {
			r.DeviceMemory += int64(a.Peak())
		}
	}
	return r, nil
}
