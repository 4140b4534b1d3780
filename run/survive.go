package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/units"
)

// With guard.on_divergence = rewind, a run that diverges goes back to the last step before the skipped updates that is
// a multiple of checkpoint.every, and skips the batches from there up to the last skipped update, as `anneal rewind`
// does. If it has no checkpoint of that step, it repeats the steps from an earlier one. So the skipped batches depend
// only on the configuration and the data. The rewind is planned before it begins, so a stop or a kill at any time does
// not change a bit of the result.

// survive starts a run with begin and, each time it diverges, rewinds and resumes it as often as guard.rewinds allows.
func survive(ctx context.Context, o Options, begin beginning) (*Result, error) {
	world := o.group()
	for {
		r, err := begin(ctx, o)
		away := (*DivergedError)(nil)
		if !errors.As(err, &away) {
			return r, err
		}
		if err := world.agree(nil); err != nil { // all ranks have released the run's files
			return nil, err
		}
		again, fault := led(world, func() (bool, error) { return rewindDiverged(away, o) })
		switch {
		case isLost(fault):
			return nil, fault
		case fault != nil:
			err = fmt.Errorf("%w\n  guard.on_divergence = rewind did not help: %v", err, fault)
			fallthrough
		case !again:
			return nil, world.same(err)
		}
		begin, o.rewound = resume, true
	}
}

// rewindDiverged rewinds a diverged run, if it may rewind once more.
func rewindDiverged(away *DivergedError, o Options) (bool, error) {
	cfg, err := runDir(o.Dir).load()
	if err != nil {
		return false, err
	}
	g := cfg.Guard
	switch {
	case g.OnDivergence != config.Rewind:
		return false, nil
	case g.Rewound >= g.Rewinds:
		return false, fmt.Errorf("the run has already rewound itself %s, as often as guard.rewinds allows",
			units.Count(g.Rewound, "time"))
	}
	good := away.First - 1
	if every := cfg.Checkpoint.Every; every > 0 {
		good -= good % every
	}
	began, err := runDir(o.Dir).branched()
	if err != nil {
		return false, err
	}
	good = max(good, began.Step)
	to := good
	if !runDir(o.Dir).savedUpTo(good) {
		to = began.Step // the initial weights come from the seed, or a branch has lost those it began with
	}
	r, err := Rewind(o.Dir, RewindOptions{
		To: to, Skip: []StepRange{{good + 1, away.Step}}, rewound: g.Rewound + 1, Warn: o.Warn,
	})
	if err != nil {
		return false, err
	}
	o.Warn(fmt.Sprintf("training diverged at step %d: "+
		"the run goes back to step %d and leaves out the batches of %s (rewind %d of %d)",
		away.Step, r.Step, stepRange{good + 1, away.Step}, g.Rewound+1, g.Rewinds))
	return true, nil
}

// savedUpTo reports whether the run has a checkpoint of a step or an earlier one. Such checkpoints may have been
// deleted in favour of later ones, which stops among skipped updates save.
func (d runDir) savedUpTo(step int) bool {
	list, err := checkpoint.List(d.checkpoints())
	return err == nil &&
		slices.ContainsFunc(list, func(e checkpoint.Entry) bool { return e.Err == nil && e.Step <= int64(step) })
}
