package run

import (
	"context"
	"encoding/json"
	"fmt"

	"anneal/train"
)

// followUp does what is due after the current step: an evaluation, the figures of tasks, samples. It adds them to the
// step's event. If the run is stopped before all is done, its checkpoint says so, and a resume does the rest.
func (s *session) followUp(ctx context.Context, e *train.Event, heard asks) (err error) {
	if s.trainer.Guard().Exhausted() { // a run that diverged must not be stopped, and saved, while it is evaluated
		return nil
	}
	step, every := s.trainer.Position().Step, s.cfg.Train.EvalEvery
	evaluates := s.last.EvalStep != step && (s.done || every > 0 && step%every == 0)
	asks, writes := s.asksTasks(), s.writesSamples()
	s.last.Due = evaluates || asks || writes
	if !s.last.Due || heard&askStop != 0 {
		return nil
	}
	defer s.clock.pause()
	if evaluates {
		if e.Evaluation, err = s.evaluate(ctx); err != nil {
			return err
		}
	}
	if asks {
		if e.Tasks, err = s.askTasks(ctx); err != nil {
			return err
		}
	}
	if writes {
		if err = s.writeSamples(); err != nil {
			return err
		}
	}
	s.last.Due = false
	return nil
}

// catchUp does what was due after the last step if an earlier process was stopped before, and adds the results to the
// line of the step in metrics.jsonl. The checkpoint of the step is written again when the run ends here, or it would
// ask for the same.
func (s *session) catchUp(ctx context.Context) error {
	step := s.trainer.Position().Step
	s.done = step == s.cfg.Train.Steps
	if !s.last.Due && (!s.done || s.last.EvalStep == step) {
		return nil
	}
	e := train.NewEvent()
	err := s.world.lead(func() error {
		return runMetrics(s.Dir, func(string) {}, func(logged train.Event) {
			if logged.Step == step {
				e = logged
			}
		})
	})
	if err != nil {
		return err
	}
	known := e
	if err := s.followUp(ctx, &e, 0); err != nil {
		return err
	}
	s.saving.step = -1
	return s.world.lead(func() error {
		s.tellLate(known, e)
		return s.amend(e)
	})
}

// tellLate tells sinks and OnProgress what they do not know of the current step, which an earlier process has made:
// known is its line in metrics.jsonl, e has what was made up.
func (s *session) tellLate(known, e train.Event) {
	e.Step, e.Steps, e.Skips = s.trainer.Position().Step, s.cfg.Train.Steps, s.trainer.Guard().Skipped
	evaluated := e.Evaluated() && !known.Evaluated()
	if evaluated {
		s.sinks.Evaluated(e.Step, e.Evaluation)
	}
	if s.OnProgress != nil && (evaluated || known.Tasks == nil && e.Tasks != nil) {
		s.OnProgress(e)
	}
}

// amend replaces the line of a step in metrics.jsonl, if it is there.
func (s *session) amend(e train.Event) error {
	path := s.dir.metrics()
	line, err := json.Marshal(e)
	if err != nil || e.Step == 0 {
		return err
	}
	s.metrics.close()
	err = rewriteMetrics(path, func(old []byte) []byte {
		if l, err := readLoggedStep(old); err == nil && l.Step == e.Step && !l.Rewound {
			return append(line, '\n')
		}
		return old
	})
	if err != nil { // training continues without it
		s.Warn(fmt.Sprintf("the evaluation of step %d cannot be recorded: %v", e.Step, err))
	}
	s.metrics, err = openMetrics(path, e.Step, func(string) {})
	return err
}
