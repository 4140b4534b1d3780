package train

import (
	"math"

	"anneal/config"
	"anneal/schedule"
)

// SetSteps changes the number of steps of a run under way. The steps made so far must be those of a run that had this
// number from its beginning: with WSD, if its decay begins later than now.
func (t *Trainer) SetSteps(steps int) {
	t.cfg.Train.Steps = steps
	t.sched = NewSchedule(t.cfg)
}

// NewSchedule returns the learning-rate schedule of a valid configuration: in updates, or in tokens if the batch
// grows.
func NewSchedule(cfg *config.Config) schedule.Schedule {
	at, s := cfg.Position(), cfg.Schedule
	warmup, end, shape := at(s.Warmup), at(cfg.Train.Steps), schedule.Shape(s.DecayShape)
	decay := func(end int) int { return int(math.Round(s.DecayFraction * float64(end))) }
	var ends []int
	for _, n := range cfg.Branches() {
		ends = append(ends, at(n))
	}
	switch s.Name {
	case "constant":
		return schedule.Constant{Warmup: warmup}
	case "linear":
		return schedule.Linear{Warmup: warmup, Steps: end, Final: s.FinalRatio}
	case "inverse_sqrt":
		return schedule.InverseSqrt{Warmup: warmup, Floor: s.FinalRatio}
	case "wsd":
		return schedule.WSD{Warmup: warmup, Steps: end, Decay: decay(end), Final: s.FinalRatio, Shape: shape}
	case "wsds":
		w := schedule.WSDS{Warmup: warmup, Ends: ends, Final: s.FinalRatio, Shape: shape}
		for _, n := range ends {
			w.Decays = append(w.Decays, decay(n))
		}
		return w
	case "restarts":
		return schedule.Restarts{Warmup: warmup, Ends: ends, Final: s.FinalRatio}
	case "cyclic":
		return schedule.Cyclic{Ends: ends, Final: s.FinalRatio}
	case "step":
		return schedule.Step{Warmup: warmup, At: ends[:len(ends)-1], Final: s.FinalRatio}
	case "power":
		return schedule.Power{Warmup: warmup, Steps: end, Decay: decay(end), Final: s.FinalRatio, Shape: shape}
	case "cosine":
		return schedule.Cosine{Warmup: warmup, Steps: end, Final: s.FinalRatio}
	}
	panic("train: unknown schedule " + s.Name)
}
