package run

import (
	"cmp"
	"context"
	"math"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/machine"
	"anneal/train"
)

// ArenaUse is the memory of one arena in bytes.
type ArenaUse struct {
	Name        string
	Bytes, Peak int64
}

// Result describes the end of a run.
type Result struct {
	Step               int
	Steps              int // that the run should make; train.minutes may end it before
	Tokens, Parameters int64
	TokensPerSecond    float64 // over this process's steps; NaN if it made none
	TrainLoss          float64 // nats per token of the last applied step; NaN without one
	EvalStep           int     // of the last evaluation
	train.Evaluation           // the last; its SourceTokens are those of the whole run
	Better             *Better // an earlier evaluation that was clearly better; nil without one, or if Interrupted

	DomainWeights              []float64 // mean over the updates, for a run that weighs domains; else nil
	ClipRate                   float64   // share of the run's updates whose gradient was clipped; NaN without an update
	NoiseScale                 float64   // tokens; NaN if train.noise_scale_every is 0 or too little was measured
	WeightsHash, OptimizerHash string
	Init                       config.Init // the initial weights, if the run started from some
	Interrupted                bool        // ctx ended before the last step; the state is saved
	PeakRSS                    int64       // bytes, of the process
	DeviceMemory               int64       // bytes, peak of the device's own memory; 0 if it uses the host's
	Arenas                     []ArenaUse
	Timing                     Timing
}

// evaluate measures the model and stores the result. If it is interrupted, the previous result stays.
func (s *session) evaluate(ctx context.Context) (train.Evaluation, error) {
	none := train.NewEvent().Evaluation
	s.watch.enter(evaluating)
	defer s.watch.enter(idle)
	text, err := s.corpus.HeldOut(s.cfg.Model.Context)
	if err != nil {
		return none, err
	}
	weights, err := s.trainer.Evaluate(ctx, text, s.cfg.Train.EvalTokens)
	if err != nil {
		return none, err
	}
	if len(weights.Textless) > 0 && !s.warnedTextless {
		s.Warn(weights.NoText().Error())
		s.warnedTextless = true
	}
	average, err := s.trainer.EvaluateAverage(ctx, text, s.cfg.Train.EvalTokens)
	if err != nil {
		return none, err
	}
	e := train.Evaluation{
		ValLoss: weights.Loss, ValBitsPerByte: weights.BitsPerByte,
		ValLossEMA: average.Loss, ValBitsPerByteEMA: average.BitsPerByte, ValSources: weights.Sources,
	}
	for _, size := range weights.ActivationRMS {
		e.ActivationRMS = append(e.ActivationRMS, train.Number(size))
	}
	if weights.Tokens > 0 {
		s.evaluateSources(&e)
	}
	if err := s.evaluateAnswers(ctx, &e, weights.Answers); err != nil {
		return none, err
	}
	s.last.Evaluation, s.last.ValSources, s.last.EvalStep = e, e.ValSources, s.trainer.Position().Step
	return e, nil
}

// evaluateAnswers adds the answers of the held-out text and of the training split, if train.eval_answers asks for
// them.
func (s *session) evaluateAnswers(ctx context.Context, e *train.Evaluation, held train.Answers) error {
	e.ValAccuracy, e.ValExact, e.TrainAccuracy, e.TrainExact = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	if !s.cfg.Train.EvalAnswers {
		return nil
	}
	text, err := s.corpus.Trained(s.cfg.Model.Context)
	if err != nil {
		return err
	}
	seen, err := s.trainer.Evaluate(ctx, text, s.cfg.Train.EvalTokens)
	if err != nil {
		return err
	}
	e.ValAccuracy, e.ValExact = held.Accuracy(), held.ExactMatch()
	e.TrainAccuracy, e.TrainExact = seen.Answers.Accuracy(), seen.Answers.ExactMatch()
	return nil
}

// report completes the event of a step, writes it to the metrics and calls OnProgress.
func (s *session) report(e train.Event) {
	if !s.world.leads() {
		return
	}
	e.TokensPerSecond = s.clock.rate()
	e.RSSBytes, _ = machine.Resident()
	if s.peak > 0 {
		e.FractionOfPeak = s.clock.flops() / 1e9 / s.peak
	}
	e.StepSeconds = s.clock.step.Seconds()
	if e.Step%s.cfg.Train.LogEvery == 0 {
		e.PhaseSeconds = s.phases.lately()
	}
	e.SourceLoss = s.sourceLoss()
	if s.saving.stood > 0 {
		e.SaveSeconds, s.saving.stood = s.saving.stood.Seconds(), 0
	}
	e.ETA = s.eta(e)
	s.metrics.write(e)
	s.tellSinks(e)
	s.noteStep()
	if s.OnProgress != nil {
		s.OnProgress(e)
	}
}

// eta records the time of a step, its evaluation and its checkpoint in the course of the run, and returns the time
// left.
func (s *session) eta(e train.Event) time.Duration {
	took, saved := s.clock.step.Seconds(), 0.0
	if e.SaveSeconds > 0 {
		saved = e.SaveSeconds
		s.course.Saved(saved)
	}
	if s.made > 1 || e.Step == e.Steps { // the first step of a process touches its memory for the first time
		s.course.Stepped(e.Step, took-saved)
	}
	if e.Evaluated() {
		s.course.Evaluated(s.clock.paused.Seconds())
	}
	left := s.course.Left(e.Step)
	if math.IsNaN(left) {
		left = took * float64(e.Steps-e.Step)
	}
	if m := s.cfg.Train.Minutes; m > 0 {
		left = max(min(left, 60*m-time.Since(s.started).Seconds()), 0)
	}
	return time.Duration(min(left, math.MaxInt64/2e9) * float64(time.Second))
}

// result returns the Result of the run, once its state is saved.
func (s *session) result(interrupted bool) (*Result, error) {
	t, position := s.trainer, s.trainer.Position()
	hash, err := led(s.world, s.hash)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Step: position.Step, Steps: s.cfg.Train.Steps, Tokens: position.Tokens, Parameters: t.Outline().Count(),
		TokensPerSecond: s.clock.average(),
		TrainLoss:       s.last.TrainLoss, Evaluation: s.last.Evaluation, EvalStep: s.last.EvalStep,
		ClipRate:   position.ClipRate(),
		NoiseScale: position.Noise.Tokens(), WeightsHash: hash[0], OptimizerHash: hash[1], Interrupted: interrupted,
		Init: s.cfg.Init,
	}
	r.ValSources, r.SourceTokens = s.last.ValSources, s.sourceTokens()
	r.DomainWeights = t.MeanDomainWeights()
	_, r.PeakRSS = machine.Resident()
	for _, a := range t.Arenas() {
		r.Arenas = append(r.Arenas, ArenaUse{Name: a.Name(), Bytes: int64(a.Size()), Peak: int64(a.Peak())})
		if a.Apart() {
			r.DeviceMemory += int64(a.Peak())
		}
	}
	r.Timing = s.timing(cmp.Or(r.DeviceMemory, r.PeakRSS))
	if s.world.leads() {
		s.writeTiming(r.Timing)
	}
	return r, nil
}

// hash returns the hashes of weights and optimizer state. If each rank has only a part, they are read from the
// checkpoint that the ranks have just saved.
func (s *session) hash() (h [2]string, err error) {
	if s.world.alone() {
		h[0], h[1], err = checkpoint.HashTensors(s.tensors)
	} else {
		h[0], h[1], _, err = checkpoint.Hash(s.dir.checkpoints())
	}
	return h, err
}
