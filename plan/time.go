package plan

import (
	"fmt"
	"strings"

	"anneal/comm"
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	profile "anneal/machine"
	"anneal/model"
	"anneal/train"
)

// A Time is the forecast of how long a run takes on the machine of a profile. It does not include waiting for data,
// saving, and the time that ranks wait for each other.
type Time struct {
	Step float64 `json:"step_seconds"`
	// seconds of a step, by train.Phase: the mean of stages
	Phases map[string]float64 `json:"phases"`
	// share of the time that the stages of a pipeline wait for each other
	Idle            float64  `json:"idle_share,omitempty"`
	TokensPerSecond float64  `json:"tokens_per_second"`
	MFU             float64  `json:"mfu,omitempty"` // model FLOPs over the peak of the machine; 0 if unknown
	Seconds         float64  `json:"seconds"`       // of all steps and evaluations, by Course
	Kernels         []Kernel `json:"-"`

	attention float64 // seconds of a step in attention
	documents Documents
}

// A Kernel stands for equal kernel calls of a step. Calls made in every k-th step count 1/k times.
type Kernel struct {
	device.Noted
	Count   float64
	Seconds float64 // of all of them
}

// TimeOf predicts the time of a valid, resolved configuration whose vocabulary is known, on an open device. Ranks
// divide its threads and its memory among them. It is an error if the profile has no kernel similar to one of the run.
func TimeOf(cfg *config.Config, dev device.Properties, p *profile.Profile, d Documents) (*Time, error) {
	ranks := max(cfg.Parallel.Ranks, 1)
	rate := p.RatesBeside(ranks, max(1, dev.Threads()/ranks))
	t := &Time{Phases: map[string]float64{}}
	if cfg.Parallel.Pipeline > 1 {
		if err := t.pipelineTime(cfg, dev, d, rate); err != nil {
			return nil, err
		}
		return t, t.derive(cfg, p, dev.Threads(), d)
	}
	var world comm.Comm = comm.Alone{}
	if ranks > 1 {
		world = absent.New(0, ranks, true)
	}
	rec, err := train.RecordStep(cfg, dev, world, d.Pairs)
	if err != nil {
		return nil, err
	}
	kernels, err := kernelsOf(rec, rate)
	if err != nil {
		return nil, err
	}
	for _, k := range kernels {
		t.count(k, 1)
		t.Step += k.Seconds
	}
	return t, t.derive(cfg, p, dev.Threads(), d)
}

// kernelsOf returns the calls of a step with their times.
func kernelsOf(rec *device.Recorder, rate func(device.Call) (float64, bool)) (list []Kernel, err error) {
	for c, tally := range rec.Calls {
		seconds, known := rate(c.Call)
		if !known {
			return nil, fmt.Errorf("the profile of this machine has no kernel like %s (%s)", c.Kernel, c.Types)
		}
		list = append(list, Kernel{c, tally.Count, tally.Count * seconds})
	}
	return list, nil
}

// count adds a share of the calls to their phase.
func (t *Time) count(k Kernel, share float64) {
	t.Kernels = append(t.Kernels, k)
	t.Phases[k.Phase] += share * k.Seconds
	if strings.HasPrefix(k.Kernel, "Attention") {
		t.attention += share * k.Seconds
	}
}

// derive computes the figures that depend on the time of a step.
func (t *Time) derive(cfg *config.Config, p *profile.Profile, threads int, d Documents) error {
	policy, err := train.PolicyOf(cfg)
	if err != nil {
		return err
	}
	batch := float64(cfg.Train.BatchTokens)
	t.TokensPerSecond = batch / t.Step
	if peak := p.Peak(policy.Operand, threads) * 1e9; peak > 0 {
		m, length := model.Outline(cfg.Model, policy), cfg.Model.Context
		flops := func(n int) float64 { return m.FLOPsPerToken(n) + train.TeacherFLOPs(cfg, policy, n) }
		products := flops(0)
		visible := d.Pairs(length) / Documents(nil).Pairs(length)
		t.MFU = t.TokensPerSecond * (products + visible*(flops(length)-products)) / peak
	}
	t.documents = d
	course, err := NewCourse(cfg, t)
	if err != nil {
		return err
	}
	t.Seconds = course.Left(0)
	if m := cfg.Train.Minutes; m > 0 {
		t.Seconds = min(t.Seconds, 60*m)
	}
	return nil
}

// planTime predicts the time of a run that fits, if this machine has a profile.
func (p *Plan) planTime(cfg *config.Config, dev device.Properties) {
	switch {
	case !p.Fits || p.Ranks != nil && !p.Ranks.Here:
		p.Untimed = "no time predicted: this machine cannot make the run"
		return
	case p.Ranks != nil && p.Ranks.Count > dev.Threads():
		p.Untimed = "no time predicted: there are more ranks than cores"
		return
	case cfg.Device != "cpu":
		p.Untimed = "no time predicted: times are known for the CPU only"
		return
	}
	speeds, err := profile.Load(profile.KeyOf(dev))
	var documents Documents
	if err == nil {
		documents, err = documentsOf(cfg)
	}
	if err == nil {
		p.Time, err = TimeOf(cfg, dev, speeds, documents)
	}
	if err != nil {
		p.Untimed = "the time is not predicted: " + err.Error()
	}
}
