package train

import (
	"context"
	"fmt"
	"slices"

	"anneal/config"
	"anneal/dataset"
)

// endGroupStep ends a step of a group. The groups exchange the results of their steps and synchronise if it is time; e
// becomes the event of all groups. Then the moving average takes the weights.
func (t *Trainer) endGroupStep(e *Event) error {
	if err := t.hearGroups(e); err != nil {
		return err
	}
	end := t.show
	if at := t.progress.Step; at%t.outer.Every == 0 || at == t.cfg.Train.Steps {
		end = t.meet
	}
	if err := end(); err != nil {
		return err
	}
	if !e.Skipped {
		t.average.update(t.progress.Updates, t.updated, t.dev)
	}
	return nil
}

// Meet synchronises groups that step separately now, unless they just did: a run may end between two synchronisations.
// Without groups it does nothing. All ranks call it after the same step.
func (t *Trainer) Meet() error {
	if t.outer == nil || t.progress.Step%t.outer.Every == 0 || t.progress.Step == t.cfg.Train.Steps {
		return nil
	}
	return t.meet()
}

func (t *Trainer) meet() error {
	if t.shard != nil {
		if err := t.shard.Settle(); err != nil {
			return err
		}
	}
	if err := t.outer.meet(t.dev); err != nil {
		return err
	}
	return t.show()
}

// groupStep is a group's report of its step.
type groupStep struct {
	applied bool    // its update was
	loss    float64 // mean over its targets
	targets int
	flops   float64

	row, rowFirst, rowNonFinite int // skips in a row, the step of the first, and non-finite among them
}

// hearGroups exchanges one message, which also carries what the ranks ask for.
func (t *Trainer) hearGroups(e *Event) error {
	if t.shard == nil && t.Ask != nil { // with a shard, the ranks of the group have asked each other
		t.Heard = t.Ask()
	}
	m := message(t.told[:0])
	m.bits(t.Heard)
	g := &t.guard
	m.group(groupStep{!e.Skipped, e.Loss, e.Targets, e.FLOPs, g.Row, g.RowFirst, g.RowNonFinite})
	t.told = m
	all, err := t.outer.world.Share(m)
	if err != nil {
		return err
	}
	steps := make([]groupStep, t.outer.Groups)
	for r, text := range all {
		told := reader{text}
		t.Heard |= told.bits()
		if r < len(steps) { // rank r is the first of group r; the other ranks of a group report the same
			steps[r] = told.group()
		}
	}
	t.outer.count(steps, e)
	return nil
}

// count makes e the event of all groups. The loss is the mean over the targets of the groups that applied their
// update, or of all groups if none did; targets and operations are sums. The other numbers remain those of this group,
// so rank 0 reports those of group 0.
func (o *outer) count(steps []groupStep, e *Event) {
	none := !slices.ContainsFunc(steps, func(s groupStep) bool { return s.applied })
	nats, targets := 0.0, 0
	o.row, o.rowFirst, o.rowNonFinite, e.Targets, e.FLOPs = 0, 0, 0, 0, 0
	for _, s := range steps {
		e.Targets, e.FLOPs = e.Targets+s.targets, e.FLOPs+s.flops
		if (s.applied || none) && s.targets > 0 {
			nats, targets = nats+s.loss*float64(s.targets), targets+s.targets
		}
		if s.row > o.row {
			o.row, o.rowFirst, o.rowNonFinite = s.row, s.rowFirst, s.rowNonFinite
		}
	}
	if targets > 0 {
		e.Loss = nats / float64(targets)
	}
}

func (m *message) group(s groupStep) {
	applied := 0.0
	if s.applied {
		applied = 1
	}
	m.floats([]float64{
		applied, s.loss, float64(s.targets), s.flops, float64(s.row), float64(s.rowFirst), float64(s.rowNonFinite),
	})
}

func (r *reader) group() groupStep {
	x := r.floats()
	return groupStep{x[0] == 1, x[1], int(x[2]), x[3], int(x[4]), int(x[5]), int(x[6])}
}

// checkGroups returns an error unless the given number of ranks can form groups that step separately.
func checkGroups(cfg *config.Config, ranks int) error {
	k := cfg.Parallel.Outer.Groups
	switch {
	case !cfg.Parallel.Outer.On():
		return nil
	case cfg.Optimizer.Name == "sophia":
		return config.Problem{
			Key: "parallel.outer.groups", Try: "parallel.outer.groups = 0, or another optimizer",
			Message: "optimizer.name = sophia does not work with groups that step alone: its extra passes follow the " +
				"updates, which each group may skip on its own",
		}
	case ranks%k != 0:
		return config.Problem{
			Key: "parallel.outer.groups", Try: fmt.Sprintf("parallel.ranks = %d", (ranks/k+1)*k),
			Message: fmt.Sprintf("parallel.outer.groups = %d with parallel.ranks = %d: the groups would not have "+
				"equally many ranks", k, ranks),
		}
	}
	return nil
}

// Evaluate is Evaluator.Evaluate. Groups that step separately each measure their own weights, and none stops early;
// rank 0 has the result of group 0. Schedule-free AdamW is measured at its average.
func (t *Trainer) Evaluate(ctx context.Context, text dataset.HeldOut, limit int) (EvalResult, error) {
	if isScheduleFree(t.cfg.Optimizer) {
		return t.evaluateAt(ctx, t.trained, text, limit)
	}
	return t.Evaluator.Evaluate(t.evaluation(ctx), text, limit)
}

// evaluation returns the context of an evaluation. With groups that step separately it is never cancelled.
func (t *Trainer) evaluation(ctx context.Context) context.Context {
	if t.outer != nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}
