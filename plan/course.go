package plan

import (
	"math"
	"slices"
	"sort"

	"anneal/config"
	"anneal/model"
	"anneal/train"
)

// A Course predicts the seconds of a run from its first step to its last, and corrects the prediction by measurements.
// Steps with shorter sequences or smaller batches (train.length_warmup, train.batch_ramp) take less time, and
// evaluations and checkpoints take time, too. Measurements correct the rest of the run: steps of all kinds by the
// ratio of measured to predicted time of the last steps, evaluations and checkpoints by their own mean. Without a
// prediction, the time of a step is proportional to its FLOPs, and only measured steps give the factor.
type Course struct {
	legs       []leg
	steps      int
	evaluation float64 // of one, as predicted
	evalEvery  int
	saveEvery  int
	predicted  bool

	cost, took  float64 // of the last steps: predicted, and measured
	evaluations mean
	saves       mean
}

// A leg is a run of steps that read the same number of tokens in sequences of the same length.
type leg struct {
	first int     // counted from 1
	step  float64 // seconds of one, or FLOPs
	left  float64 // of this leg and those after it
}

type mean struct{ sum, n float64 }

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m mean) or(otherwise float64) float64 {
	if m.n == 0 {
		return otherwise
	}
	return m.sum / m.n
}

// memory is the time, in seconds, after which the weight of a measured step has fallen to 1/e.
const memory = 10

// NewCourse returns the course of a valid, resolved configuration. t may be nil.
func NewCourse(cfg *config.Config, t *Time) (*Course, error) {
	if err := cfg.Model.Validate(); err != nil {
		return nil, err
	}
	policy, err := train.PolicyOf(cfg)
	if err != nil {
		return nil, err
	}
	c := &Course{
		steps: cfg.Train.Steps, evalEvery: cfg.Train.EvalEvery, saveEvery: cfg.Checkpoint.Every,
		predicted: t != nil && t.Step > 0,
	}
	m, tokens, full := model.Outline(cfg.Model, policy), float64(cfg.Train.EvalTokens), cfg.Model.Context
	step := func(p train.Portion) float64 {
		return float64(p.Tokens) * (m.FLOPsPerToken(p.Length) + train.TeacherFLOPs(cfg, policy, p.Length))
	}
	c.evaluation = tokens * m.FLOPsPerToken(full) / 3
	if cfg.Train.EvalAnswers {
		tokens *= 2 // also of the training split
		c.evaluation *= 2
	}
	if c.predicted {
		batch := float64(cfg.Train.BatchTokens)
		step = func(p train.Portion) float64 { return t.portion(float64(p.Tokens)/batch, p.Length, full) }
		// an evaluation makes one of the head's three products
		c.evaluation = tokens / batch * (t.Phases[train.Forward.String()] + t.Phases[train.Head.String()]/3)
	}
	ramps, at := train.NewRamps(cfg), train.Position{}
	var last train.Portion
	for at.Step < c.steps {
		p := ramps.Next(at)
		if p.Tokens != last.Tokens || p.Length != last.Length {
			c.legs = append(c.legs, leg{first: at.Step + 1, step: step(p)})
		}
		at, last = at.After(p, min(ramps.SameFor(at), c.steps-at.Step)), p
	}
	c.SetSteps(c.steps)
	return c, nil
}

// SetSteps changes the number of steps of the run. Added steps take as long as the last one.
func (c *Course) SetSteps(steps int) {
	c.steps = steps
	c.legs = slices.DeleteFunc(c.legs, func(l leg) bool { return l.first > steps })
	left, end := 0.0, steps
	for i := len(c.legs) - 1; i >= 0; i-- {
		l := &c.legs[i]
		left += float64(end-l.first+1) * l.step
		l.left, end = left, l.first-1
	}
}

// portion predicts a step with a share of the batch, in sequences of a length. full is the length in the prediction.
func (t *Time) portion(share float64, length, full int) float64 {
	each := t.Phases[train.Summing.String()] + t.Phases[train.Updating.String()]
	seen := func(n int) float64 { return t.documents.Pairs(n) / float64(n) } // keys of a query
	return each + share*(t.Step-each-t.attention*(1-seen(length)/seen(full)))
}

// at returns the leg of a step, counted from 1.
func (c *Course) at(step int) leg {
	return c.legs[sort.Search(len(c.legs), func(i int) bool { return c.legs[i].first > step })-1]
}

// Stepped records how many seconds a step took, without evaluations and checkpoints.
func (c *Course) Stepped(step int, seconds float64) {
	keep := math.Exp(-seconds / memory)
	c.cost, c.took = keep*c.cost+c.at(step).step, keep*c.took+seconds
}

// Evaluated records how many seconds an evaluation took.
func (c *Course) Evaluated(seconds float64) { c.evaluations.add(seconds) }

// Saved records for how many seconds a checkpoint stopped training.
func (c *Course) Saved(seconds float64) { c.saves.add(seconds) }

// Left returns the seconds from the end of a step, with its evaluation and checkpoint, to the end of the run; NaN if
// nothing was predicted or measured.
func (c *Course) Left(step int) float64 {
	if step >= c.steps {
		return 0
	}
	pace := 1.0 // measured over predicted
	switch {
	case c.cost > 0:
		pace = c.took / c.cost
	case !c.predicted:
		return math.NaN()
	}
	l := c.at(step + 1)
	steps := l.left - float64(step+1-l.first)*l.step
	return pace*steps + c.evaluations.or(pace*c.evaluation)*float64(occasions(step, c.steps, c.evalEvery)) +
		c.saves.or(0)*float64(occasions(step, c.steps, c.saveEvery))
}

// occasions counts events that happen after every so many steps, 0 for never, and after the last step.
func occasions(from, to, every int) int {
	if every == 0 {
		return 1
	}
	return (to+every-1)/every - from/every
}
