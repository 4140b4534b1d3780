package plan

import (
	"fmt"

	"anneal/comm"
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	profile "anneal/machine"
	"anneal/model"
	"anneal/train"
)

// A Time is the forecast of how long a run takes on the machine of a profile. Waiting for data, saving, and the time
// that ranks wait for each other are not in it.
type Time struct {
	Step            float64            `json:"step_seconds"`
	Phases          map[string]float64 `json:"phases"` // seconds of a step, by train.Phase
	TokensPerSecond float64            `json:"tokens_per_second"`
	MFU             float64            `json:"mfu,omitempty"` // model FLOPs over the peak of the machine; 0 if unknown
	Seconds         float64            `json:"seconds"`       // of all steps and evaluations
	Kernels         []Kernel           `json:"-"`
}

// A Kernel is the calls of a step that are equal.
type Kernel struct {
	device.Noted
	Count   int
	Seconds float64 // of all of them
}

// TimeOf predicts the time of a valid, resolved configuration whose vocabulary is known, on an open device. Ranks share
// out its threads. It is an error if the profile has nothing like a kernel of the run.
func TimeOf(cfg *config.Config, dev device.Properties, p *profile.Profile) (*Time, error) {
	var world comm.Comm = comm.Alone{}
	ranks := max(cfg.Parallel.Ranks, 1)
	if ranks > 1 {
		world = absent.New(0, ranks, true)
	}
	rec, err := train.RecordStep(cfg, dev, world)
	if err != nil {
		return nil, err
	}
	t := &Time{Phases: map[string]float64{}}
	rate := p.Rates(max(1, dev.Threads()/ranks))
	for c, tally := range rec.Calls {
		seconds, known := rate(c.Call)
		if !known {
			return nil, fmt.Errorf("the profile of this machine has no kernel like %s (%s)", c.Kernel, c.Types)
		}
		k := Kernel{c, tally.Count, float64(tally.Count) * seconds}
		t.Kernels = append(t.Kernels, k)
		t.Phases[c.Phase] += k.Seconds
		t.Step += k.Seconds
	}
	return t, t.derive(cfg, dev)
}

// derive computes what follows from the time of a step.
func (t *Time) derive(cfg *config.Config, dev device.Properties) error {
	policy, err := train.PolicyOf(cfg)
	if err != nil {
		return err
	}
	batch := float64(cfg.Train.BatchTokens)
	t.TokensPerSecond = batch / t.Step
	if peak := dev.Peak(policy.Operand) * 1e9; peak > 0 {
		t.MFU = t.TokensPerSecond * model.Outline(cfg.Model, policy).FLOPsPerToken(cfg.Model.Context) / peak
	}
	t.Seconds = float64(cfg.Tokens()) / t.TokensPerSecond
	evaluations := 1
	if every := cfg.Train.EvalEvery; every > 0 {
		evaluations = (cfg.Train.Steps + every - 1) / every
	}
	// of the head's three products an evaluation makes one
	forward := (t.Phases[train.Forward.String()] + t.Phases[train.Head.String()]/3) / batch
	t.Seconds += float64(evaluations) * float64(cfg.Train.EvalTokens) * forward
	if m := cfg.Train.Minutes; m > 0 {
		t.Seconds = min(t.Seconds, 60*m)
	}
	return nil
}

// planTime predicts the time of a run that fits, if this machine has a profile.
func (p *Plan) planTime(cfg *config.Config, dev device.Properties) {
	switch {
	case !p.Fits || p.Ranks != nil && !p.Ranks.Here:
		p.Untimed = "the time is predicted for runs that this machine can make"
		return
	case cfg.Device != "cpu":
		p.Untimed = "the time is predicted for the CPU alone"
		return
	case cfg.Parallel.Pipeline > 1:
		p.Untimed = "the time of a pipeline is not predicted"
		return
	}
	speeds, err := profile.Load(profile.KeyOf(dev))
	if err == nil {
		p.Time, err = TimeOf(cfg, dev, speeds)
	}
	if err != nil {
		p.Untimed = "the time is not predicted: " + err.Error()
	}
}
