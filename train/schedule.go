package train

import (
	"cmp"
	"math"

	"anneal/config"
	"anneal/schedule"
)

// SetSteps changes the number of steps of a started run. The steps so far must be the same as in a run that had the
// new number from the start. With WSD they are if the new decay begins after the current step.
func (t *Trainer) SetSteps(steps int) {
	t.cfg.Train.Steps = steps
	t.sched = NewSchedule(t.cfg)
}

// NewSchedule returns the learning-rate schedule of a valid configuration, in updates, or in tokens if the batch
// grows. A schedule that ends at 0 reaches 0 at the update after the last one, because an update with the rate 0 would
// be wasted.
func NewSchedule(cfg *config.Config) schedule.Schedule {
	at, s := cfg.Position(), cfg.Schedule
	last := cmp.Or(s.Horizon, cfg.Train.Steps)
	end, beyond := at(last), 0
	if s.FinalRatio == 0 {
		beyond = at(last+1) - end
	}
	warmup, shape := at(s.Warmup), schedule.Shape(s.DecayShape)
	decay := func(end int) int { return int(math.Round(s.DecayFraction * float64(end))) }
	var ends []int
	for _, n := range cfg.Branches() {
		ends = append(ends, at(n))
	}
	switch s.Name {
	case "constant":
		return schedule.Constant{Warmup: warmup}
	case "linear":
		return schedule.Linear{Warmup: warmup, Steps: end + beyond, Final: s.FinalRatio}
	case "inverse_sqrt":
		return schedule.InverseSqrt{Warmup: warmup, Floor: s.FinalRatio}
	case "wsd":
		return schedule.WSD{
			Warmup: warmup, Steps: end + beyond, Decay: decay(end) + beyond, Final: s.FinalRatio, Shape: shape,
		}
	case "wsds":
		w := schedule.WSDS{Warmup: warmup, Ends: ends, Final: s.FinalRatio, Beyond: beyond, Shape: shape}
		for _, n := range ends {
			w.Decays = append(w.Decays, decay(n))
		}
		return w
	case "restarts":
		return schedule.Restarts{Warmup: warmup, Ends: ends, Final: s.FinalRatio, Beyond: beyond}
	case "cyclic":
		return schedule.Cyclic{Ends: ends, Final: s.FinalRatio, Beyond: beyond}
	case "step":
		return schedule.Step{Warmup: warmup, At: ends[:len(ends)-1], Final: s.FinalRatio}
	case "power":
		return schedule.Power{
			Warmup: warmup, Steps: end + beyond, Decay: decay(end) + beyond, Final: s.FinalRatio, Shape: shape,
		}
	case "one_cycle":
		return schedule.OneCycle{Warmup: warmup, Steps: end + beyond, Final: s.FinalRatio}
	case "cosine":
		return schedule.Cosine{Warmup: warmup, Steps: end + beyond, Final: s.FinalRatio}
	}
	panic("train: unknown schedule " + s.Name)
}

// Momentum returns the momentum of update n (from 1) if it differs from the optimizer's own, else 0.
func Momentum(cfg *config.Config, n int) float64 {
	first, last, steps := config.FirstMomentum, cfg.Optimizer.Momentum, cfg.Schedule.MomentumWarmup
	if n >= steps || last <= first {
		return 0
	}
	return first + (last-first)*float64(n)/float64(steps)
}

// DecayLeft returns the weight decay of update n (from 1) as a fraction of the first one's.
func DecayLeft(cfg *config.Config, n int) float64 {
	if cfg.Schedule.WeightDecay != "linear" {
		return 1
	}
	return max(1-float64(n-1)/float64(cfg.Train.Steps), 0)
}
