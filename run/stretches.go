package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/schedule"
	"anneal/train"
)

// A run whose config.yaml was edited between two commands was trained with several configurations. Its checkpoints
// hold all of them, so that a branch can be compared with what really happened. Early versions of anneal kept only the
// last one.

// A stretch is the steps of a run that were trained with one configuration.
type stretch struct {
	Until  int            `json:"until"` // its last step
	Config *config.Config `json:"config"`
}

// stretches returns all stretches of a trained state, in order.
func (s *state) stretches() []stretch {
	return append(slices.Clone(s.Past), stretch{s.Progress.Step, s.Config})
}

// continued returns the configuration for the data of a run that continues from this state with cfg.
func (s *state) continued(cfg *config.Config) *config.Config {
	if s.Config == nil {
		return cfg
	}
	var past []config.Stretch
	for _, p := range s.stretches() {
		past = append(past, config.Stretch(p))
	}
	return cfg.After(past)
}

// Continued returns cfg for a plan of the run in dir: it counts the steps that the run has made with their batches.
func Continued(dir string, cfg *config.Config) *config.Config {
	var last state
	if _, err := checkpoint.LoadState(runDir(dir).checkpoints(), &last); err != nil {
		return cfg
	}
	return last.continued(cfg)
}

// readAs calls open with the configuration for the data of a run that continues from this state with cfg. If that is
// not how the run has read, it is cfg itself: its steps then count as if all had had its batches.
func (s *state) readAs(cfg *config.Config, open func(*config.Config) error) error {
	continued := s.continued(cfg)
	err := open(continued)
	if err != nil && continued != cfg {
		err = open(cfg)
	}
	return err
}

// beginStretch notes that the steps after this state are trained with cfg.
func (s *state) beginStretch(cfg *config.Config) {
	step, n := s.Progress.Step, len(s.Past)
	if s.Config == nil || step == 0 || n > 0 && s.Past[n-1].Until == step || pastChanges(s.Config, cfg) == nil {
		return
	}
	s.Past = append(s.Past, stretch{step, s.Config})
}

// checkPast refuses stretches that no run can have.
func (s *state) checkPast() error {
	before := 0
	for _, p := range s.Past {
		if p.Until <= before || p.Until > s.Progress.Step {
			return fmt.Errorf("at step %d, a configuration until step %d after one until step %d is impossible",
				s.Progress.Step, p.Until, before)
		}
		if before = p.Until; p.Config == nil {
			return fmt.Errorf("it does not say which configuration the run had until step %d", p.Until)
		}
	}
	if s.Past != nil && s.Config == nil {
		return errors.New("it does not say which configuration the run has")
	}
	return nil
}

// pastChanges is Changes for what matters to steps that are done. Skipped samples are not listed, because the data's
// state is checked to agree on those of the past.
func pastChanges(was, now *config.Config) []string {
	return changesOf(was, now, func(key string) bool { return key != "data.skip" && changesBits(key, was, now) })
}

// agreement returns for how many first steps, at most limit, a run with this past had the same batches and scheduled
// values as a run of cfg. If there are fewer, differs names what is different in the next step.
func agreement(past []stretch, cfg *config.Config, limit int) (steps int, differs string) {
	var at train.Position
	now := newScheduled(cfg)
	for _, p := range past {
		for was := newScheduled(p.Config); at.Step < min(p.Until, limit); {
			m, n := was.next(at), now.next(at)
			if differs := m.differs(n); differs != "" {
				return at.Step, differs
			}
			at.Step, at.Updates, at.Tokens, at.Applied =
				at.Step+1, at.Updates+1, at.Tokens+m.Tokens, at.Applied+m.Tokens
		}
	}
	return at.Step, ""
}

// scheduled gives what the configuration of a run schedules for each step.
type scheduled struct {
	cfg   *config.Config
	ramps train.Ramps
	rate  schedule.Schedule
}

func newScheduled(cfg *config.Config) scheduled {
	return scheduled{cfg, train.NewRamps(cfg), train.NewSchedule(cfg)}
}

// scheduledStep is what is scheduled for one step.
type scheduledStep struct {
	train.Portion
	lr, momentum, decay float64
}

// next returns what is scheduled for the step after p.
func (s scheduled) next(p train.Position) scheduledStep {
	n := s.ramps.Next(p)
	return scheduledStep{
		n, s.cfg.Optimizer.LR * s.rate.Factor(n.Position), train.Momentum(s.cfg, p.Updates+1),
		train.DecayLeft(s.cfg, p.Updates+1),
	}
}

// differs names the first difference between two steps; "" if there is none.
func (a scheduledStep) differs(b scheduledStep) string {
	switch {
	case a.lr != b.lr || a.Rate != b.Rate:
		return "learning rate"
	case a.momentum != b.momentum:
		return "momentum"
	case a.decay != b.decay:
		return "weight decay"
	case a.Tokens != b.Tokens:
		return "batch size"
	case a.Length != b.Length:
		return "sequence length"
	case a.Micro != b.Micro:
		return "micro-batch"
	}
	return ""
}

// warnOfAnotherPast warns if a branch differs from a run of its configuration from the start.
func (s *session) warnOfAnotherPast(from string) {
	if s.last.Config == nil {
		return
	}
	past, step := s.last.stretches(), s.last.Progress.Step
	if n, differs := agreement(past, s.cfg, step); n < step {
		s.warnEarly(fmt.Sprintf("from step %d on, %s used another %s than this configuration: "+
			"the branch will not end like a run from the start", n+1, from, differs))
	}
	present := besideSchedule(s.last.Config, s.cfg)
	if len(present) > 0 {
		s.warnEarly("besides the schedule, the branch changes\n  " + strings.Join(present, "\n  "))
	}
	first := 1
	for _, p := range s.last.Past {
		list := slices.DeleteFunc(besideSchedule(p.Config, s.cfg), func(c string) bool {
			return slices.Contains(present, c)
		})
		if len(list) > 0 {
			s.warnEarly(fmt.Sprintf("the configuration of %s was changed after step %d. Steps %d to %[2]d had other "+
				"values than the branch, which will not end like a run from the start\n  %[4]s",
				from, p.Until, first, strings.Join(list, "\n  ")))
		}
		first = p.Until + 1
	}
}

// besideSchedule is pastChanges without the keys of the schedule.
func besideSchedule(was, now *config.Config) []string {
	return slices.DeleteFunc(pastChanges(was, now), func(c string) bool {
		return strings.HasPrefix(c, "schedule.") || strings.HasPrefix(c, "train.steps:")
	})
}
