package run

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"anneal/config"
)

// A pace adapts the number of steps of a run to the clock, so that the run ends when its time ends (Options.Time).
// This is possible as long as past steps do not depend on the number of future ones: with WSD until the decay begins.
// The result is, bit for bit, that of a run with the final number of steps from the beginning.
type pace struct {
	end   time.Time // when the run should end
	looks []int     // steps after which to check the clock; the last is where the decay would begin
	made  int       // steps at the last look
	at    time.Time // and when that was
}

const (
	paceReserve = 0.03 // share of the time for the last checkpoint
	paceSlack   = 0.01 // share of the steps; smaller changes are not made
)

// newPace returns the pace of a run from the present step on, or nil if its length is not adapted to the clock.
func (s *session) newPace() *pace {
	c := s.cfg
	if s.Time <= 0 || c.Schedule.Name != "wsd" || len(LengthKeys(c)) > 0 {
		return nil
	}
	from, to, made := c.Schedule.Warmup, decayBegins(c, c.Train.Steps), s.trainer.Position().Step
	looks := []int{(7*from + to) / 8, (from + to) / 2, (from + 3*to) / 4, to}
	return &pace{
		end:   s.started.Add(time.Duration((1 - paceReserve) * float64(s.Time))),
		looks: slices.DeleteFunc(looks, func(look int) bool { return look <= made }), made: made, at: time.Now(),
	}
}

// LengthKeys lists the keys of a configuration with which steps of a run before its decay depend on its length.
func LengthKeys(c *config.Config) (keys []string) {
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"data.order", c.Data.Order.Given()},
		{"data.mix", c.MixFollowsLength()},
		{"train.batch_ramp", c.Train.BatchRamp.Given()},
		{"train.length_warmup", c.Train.LengthWarmup.Given()},
		{"schedule.horizon", c.Schedule.Horizon > 0},
		{"schedule.weight_decay", c.Schedule.WeightDecay != "constant"},
		{"optimizer.decay_timescale", c.Optimizer.DecayTimescale > 0},
	} {
		if k.given {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// decayBegins returns the step after which the rate begins to fall, in a run of the given number of steps.
func decayBegins(cfg *config.Config, steps int) int {
	return max(steps-int(math.Round(cfg.Schedule.DecayFraction*float64(steps))), cfg.Schedule.Warmup)
}

// keepPace checks the clock if it is time to, and changes the length of the run if necessary.
func (s *session) keepPace() error {
	p, made := s.pace, s.trainer.Position().Step
	if p == nil || s.done || len(p.looks) == 0 || made < p.looks[0] || made > p.looks[len(p.looks)-1] {
		return nil
	}
	now := time.Now()
	each := now.Sub(p.at) / time.Duration(max(made-p.made, 1))
	steps, err := led(s.world, func() (int, error) {
		steps := p.length(s.cfg, made, now)
		if s.MostSteps > 0 {
			steps = min(steps, max(s.MostSteps, s.cfg.Train.Steps))
		}
		if steps == s.cfg.Train.Steps {
			return steps, nil
		}
		if err := s.recordLength(steps); err != nil { // the next look may have more luck
			s.Warn(fmt.Sprintf("train.steps remains %d instead of %d: %v", s.cfg.Train.Steps, steps, err))
			return s.cfg.Train.Steps, nil
		}
		s.note(fmt.Sprintf("train.steps = %d instead of %d: a step takes %s, and %s are left", steps,
			s.cfg.Train.Steps, each.Round(time.Millisecond/10), p.end.Sub(now).Round(time.Second)))
		return steps, nil
	})
	if err != nil {
		return err
	}
	p.made, p.at = made, now
	p.looks = append(p.looks[:len(p.looks)-1], decayBegins(s.cfg, steps))
	last := p.looks[len(p.looks)-1]
	p.looks = slices.DeleteFunc(p.looks, func(look int) bool { return look <= made || look > last })
	if steps != s.cfg.Train.Steps {
		setLength(s.cfg, steps)
		s.trainer.SetSteps(steps)
		s.course.SetSteps(steps)
	}
	return nil
}

// length returns how many steps the run should have, at the speed since the last look. The decay does not begin before
// now; before the warmup has ended it never does.
func (p *pace) length(cfg *config.Config, made int, now time.Time) int {
	steps := cfg.Train.Steps
	each := now.Sub(p.at).Seconds() / float64(max(made-p.made, 1))
	want := max(made+int(max(p.end.Sub(now).Seconds(), 0)/each), made+1)
	if made > cfg.Schedule.Warmup {
		want = max(want, int(math.Ceil(float64(made)/(1-cfg.Schedule.DecayFraction))))
	}
	if math.Abs(float64(want-steps)) < paceSlack*float64(steps) {
		return steps
	}
	return want
}

// recordLength records the number of steps in the run's configuration, for resumes.
func (s *session) recordLength(steps int) error {
	files, err := s.dir.readFiles()
	if err != nil {
		return err
	}
	cfg := s.cfg.Clone()
	setLength(cfg, steps)
	files.config = s.dir.configured(files.config, cfg)
	if err := writeDurably(s.dir.config(), files.config); err != nil {
		return err
	}
	s.store.SetOrigin(files.origin())
	return nil
}

// setLength sets the number of steps, which followed the clock.
func setLength(cfg *config.Config, steps int) {
	cfg.DeriveText("train.steps", strconv.Itoa(steps), "follows the clock; "+strconv.Itoa(cfg.Train.Steps)+" before")
}
