package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/plan"
	"anneal/sinks"
	"anneal/train"
)

// Options of a run.
type Options struct {
	Config     *config.Config    // Run derives model.vocab from the data; Resume reads the config of the run
	Dir        string            // the run directory
	Device     string            // overrides Config.Device unless it is ""
	Threads    int               // overrides Config.Threads if above 0
	Plan       *plan.Foresight   // plan to compare the run with at its end; may be nil
	OnProgress func(train.Event) // called after every step, and for what a resume makes up after one; may be nil
	Warn       func(string)      // receives warnings for the user; may be nil
	Note       func(string)      // receives remarks that are not warnings; may be nil
	Notes      func() []string   // called after every step for remarks that go to the run's journal; may be nil
	Saves      <-chan struct{}   // asks for a checkpoint after the current step; may be nil
	Overrides  []string          // for Resume: section.key=value, which replaces values of the run's config.yaml
	// weighs the sources of data.mix in place of data.weights; nil for other runs
	DRO *DRO
	// The group in which this process is one rank of the run. If it is nil or has one rank, this process runs all
	// parallel.ranks.
	World comm.Comm
	// Called before the first step, once this run owns its directory; may be nil. From then on gone returns a
	// *LostError if the process of another rank on this host has ended. gone may be called at any time.
	Begun func(gone func() error)
	// The time for the run, counted from its beginning in this process. If it is not 0 and the schedule allows it, the
	// number of steps is adapted to the time.
	Time      time.Duration
	MostSteps int // up to which the number of steps may be raised for Time; 0: without limit
	// Returns the exit code of an error, which the ranks exchange; nil if the process does not exit with it.
	ExitCode func(error) int

	rewound bool         // this process has just taken the run back
	begun   time.Time    // when this process began the run, whose train.minutes count from then
	kept    *sinks.Kept  // what this process has done for the run
	late    func(func()) // on ranks: receives what closes a session whose memory other ranks may still read
}

// Run starts a new run in o.Dir and trains to its end, or until ctx ends. If ranks of one process fail, the error is
// that of the rank that knows the cause.
func Run(ctx context.Context, o Options) (*Result, error) { return onRanks(ctx, o, o.Config, start) }

func start(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.group().lead(func() error { return CheckNewRun(o.Dir) }); err != nil {
		return nil, err
	}
	s, err := newSession(o.Config, o)
	if err != nil {
		return nil, err
	}
	defer s.end(&err)
	trained := s.cfg.Init.From != ""
	if trained {
		if err := startFrom(s.trainer, s.cfg, s.corpus, s.world); err != nil {
			return nil, err
		}
	}
	// Such a run needs its first state: its initial weights, or the mark that it weighs domains.
	if err := s.create(trained || s.DRO != nil); err != nil {
		return nil, err
	}
	s.pace = s.newPace()
	return s.run(ctx)
}

// create makes the run directory, with a checkpoint of the present state if the run must not begin without it. The
// checkpoint comes first: a directory without a configuration is not yet a run.
func (s *session) create(withState bool) error {
	if s.cfg.Guard.Rewound > 0 { // its configuration is that of a run that has
		s.cfg.Derive("guard.rewound", 0, "a new run")
	}
	var files runFiles
	err := s.world.lead(func() error {
		if err := s.dir.begin(); err != nil {
			return err
		}
		files = newRunFiles(s.dir, s.cfg, s.corpus.TokenizerJSON, s.corpus.Tokenizer)
		files.branch = s.branchText
		return s.openStore(files.origin())
	})
	if err != nil {
		return err
	}
	if err := s.openRank(); err != nil {
		return err
	}
	if withState {
		if err := s.saveLast(); err != nil {
			return err
		}
	}
	return s.world.lead(func() error { return s.dir.finish(files) })
}

// Resume continues the run in o.Dir from its newest verified checkpoint, or from the start if it has none yet. The
// number of ranks may differ from before.
func Resume(ctx context.Context, o Options) (*Result, error) {
	if o.Dir == "" {
		return nil, errNoDir
	}
	cfg, err := runDir(o.Dir).moved(o.Overrides)
	if err != nil {
		return nil, err
	}
	return onRanks(ctx, o, cfg, resume)
}

func resume(ctx context.Context, o Options) (_ *Result, err error) {
	world := o.group()
	if err := world.lead(func() error { return finishRewind(runDir(o.Dir), o.Warn) }); err != nil {
		return nil, err
	}
	cfg, err := runDir(o.Dir).moved(o.Overrides)
	if err == nil {
		err = refuseWeights(runDir(o.Dir))
	}
	if err := world.agree(err); err != nil {
		return nil, err
	}
	s, err := newSession(cfg, o)
	if err != nil {
		return nil, runDir(o.Dir).saysWhere(cfg, err)
	}
	defer s.end(&err)
	var files runFiles
	err = s.world.lead(func() error {
		if files, err = s.dir.readFiles(); err != nil {
			return err
		}
		if len(o.Overrides) > 0 {
			files.config = s.dir.configured(files.config, cfg)
		}
		return s.openStore(files.origin())
	})
	if err != nil {
		return nil, err
	}
	if err := s.openRank(); err != nil {
		return nil, err
	}
	if err := s.restore(); err != nil {
		return nil, s.dir.saysWhere(cfg, err)
	}
	if len(o.Overrides) > 0 { // which later resumes keep
		err := s.world.lead(func() error { return writeDurably(s.dir.config(), files.config) })
		if err != nil {
			return nil, err
		}
	}
	if o.rewound { // by this process, whose time goes on
		s.pace = s.newPace()
	}
	return s.run(ctx)
}

// run trains to the end under the run's journal.
func (s *session) run(ctx context.Context) (*Result, error) {
	err := s.weigh()
	if err == nil {
		err = s.world.lead(s.begin)
	}
	if err != nil {
		s.endJournal(nil, err)
		return nil, err
	}
	if s.Begun != nil {
		s.Begun(s.findGone())
	}
	r, err := s.train(ctx)
	if !s.world.leads() {
		return r, err
	}
	if err == nil && !r.Interrupted {
		r.Better = s.better()
	}
	if away := (*DivergedError)(nil); errors.As(err, &away) {
		if err := s.dir.markDiverged(away); err != nil {
			s.Warn(fmt.Sprintf("%s does not say that the run diverged: %v", s.dir.diverged(), err))
		}
	}
	s.endJournal(r, err)
	return r, err
}

// begin opens the files that the leader writes while the run trains.
func (s *session) begin() (err error) {
	if err := s.startJournal(); err != nil {
		return err
	}
	step := s.trainer.Position().Step
	if err := s.openSinks(); err != nil {
		return err
	}
	if s.rewound { // of which it has said that it diverged
		s.alert("continued", "")
	}
	if err := s.dir.forgetSamples(step); err != nil {
		return err
	}
	if s.metrics, err = openMetrics(s.dir.metrics(), step, s.Warn); err != nil {
		return err
	}
	if step < s.cfg.Train.Steps {
		if err := s.store.CheckBytes(s.bytes); err != nil {
			return err
		}
	}
	if err := s.forgetEnd(); err != nil { // only now: a run that cannot begin remains a diverged one
		return err
	}
	s.announceTiming()
	s.startWatchdog()
	return nil
}

// forgetEnd removes what the last command that trained the run left about its end, and about its ranks.
func (s *session) forgetEnd() error {
	if err := s.dir.unmarkDiverged(); err != nil {
		return err
	}
	err := os.Remove(s.dir.exit())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.world.alone() { // others have replaced it
		err = errors.Join(err, os.RemoveAll(s.dir.ranks()))
	}
	if err != nil {
		return fmt.Errorf("cannot continue the run: %w", err)
	}
	return nil
}

// train steps to the end, evaluating, logging and saving on the way.
func (s *session) train(ctx context.Context) (_ *Result, err error) {
	t := s.trainer
	t.Ask = func() uint64 { return uint64(s.asks(ctx.Done())) }
	t.OnPhase = s.onPhase
	s.reserve()
	s.clock.start(t.Position().Tokens)
	err = s.catchUp(ctx)
	for err == nil && t.Position().Step < s.cfg.Train.Steps && !s.done {
		if err = s.step(ctx); err == nil {
			err = s.keepPace()
		}
	}
	interrupted := errors.Is(err, errAsked) || err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) ||
		!s.world.alone() && errors.Is(err, context.Canceled) // of another rank
	if err != nil && !interrupted {
		return nil, s.fail(err)
	}
	err = s.saveLast()
	if err == nil {
		err = t.Settle()
	}
	if err != nil {
		return nil, s.lost(s.locate(err))
	}
	return s.result(interrupted)
}

// errAsked means that a rank asked for the end of the run.
var errAsked = errors.New("the run was asked to stop")

// fail ends a run with an error. If all ranks have the same error, the checkpoint in progress is still completed.
func (s *session) fail(err error) error {
	err = s.lost(s.locate(err))
	away := (*DivergedError)(nil)
	diverged := errors.As(err, &away)
	if s.world.alone() {
		if unsaved := s.store.Wait(); unsaved != nil {
			err = errors.Join(err, unsaved)
		}
	} else if diverged {
		if lost := s.finishSave(); lost != nil {
			return lost
		}
	}
	if diverged {
		saved, lost := led(s.world, func() (bool, error) {
			_, ok := s.dir.lastCheckpoint()
			return ok, nil
		})
		if lost != nil {
			return lost
		}
		away.Saved = saved
	}
	return err
}

// outOfTime reports whether train.minutes have passed in this process.
func (s *session) outOfTime() bool {
	limit := s.cfg.Train.Minutes
	return limit > 0 && time.Since(s.started).Minutes() >= limit
}

// step makes one step and does what is due after it. If one rank is asked to stop, all ranks stop after the step.
func (s *session) step(ctx context.Context) error {
	t := s.trainer
	s.look.begin(t.Position().Step + 1)
	s.fault.strike(s.world.Rank(), t.Position().Step+1)
	e, err := t.Step(ctx, s.corpus.Train)
	s.watch.enter(idle)
	if err != nil {
		return err
	}
	s.phases.endStep(s.made == 0 && t.Position().Step < s.cfg.Train.Steps)
	s.made++
	heard := asks(t.Heard)
	if s.world.alone() {
		heard = s.asks(nil) // if ctx ends, the next step, or the evaluation, is not begun
	}
	if err := s.countTargets(e.Targets); err != nil {
		return s.world.same(err)
	}
	s.tellRise(e)
	if !e.Skipped {
		s.last.TrainLoss = e.Loss
	}
	s.clock.tick(t.Position().Tokens, e.FLOPs)
	if s.done = t.Position().Step == s.cfg.Train.Steps || heard&askTime != 0; s.done {
		if err := t.Meet(); err != nil {
			return err
		}
	}
	err = s.followUp(ctx, &e, heard)
	s.report(e)
	if err != nil {
		return err
	}
	if t.Guard().Exhausted() {
		return s.world.same(&DivergedError{
			Step: t.Position().Step, First: t.Guard().RowFirst, Skips: t.Guard().Row, NonFinite: t.Guard().RowNonFinite,
			LR: s.cfg.Optimizer.LR, LossScale: t.LossScale(), Dir: s.Dir,
		})
	}
	if heard&askStop != 0 {
		return errAsked
	}
	return s.saveAsked(heard)
}

// asks returns this rank's requests in a step.
func (s *session) asks(stop <-chan struct{}) asks {
	mine := s.parts.asks()
	if s.outOfTime() {
		mine |= askTime
	}
	select {
	case <-s.Saves:
		mine |= askSave
	default:
	}
	select {
	case <-stop:
		mine |= askStop
	default:
	}
	return mine
}

// saveAsked starts a checkpoint if one is due or requested; otherwise it continues the one in progress.
func (s *session) saveAsked(heard asks) error {
	at := s.trainer.Position().Step
	if every := s.cfg.Checkpoint.Every; every > 0 && at%every == 0 && !s.done && !s.mayRewind() {
		return s.saveDue()
	}
	switch {
	case heard&askSave != 0:
		s.journal.write("note", "a checkpoint was asked for")
		return s.saveDue()
	case heard&askWriting != 0:
		return nil
	case s.parts.underway:
		return s.settleParts()
	case s.world.leads() && s.store.Done():
		return s.settleSave()
	}
	return nil
}

// mayRewind reports whether the run may soon rewind to a checkpoint from before the updates that are being skipped. A
// checkpoint among these updates must not replace it.
func (s *session) mayRewind() bool {
	return s.cfg.Guard.OnDivergence == config.Rewind && s.trainer.Guard().Row > 0
}

// countTargets warns of a batch without a target, and gives up after as many in a row as the guard allows skips: such
// a run would learn nothing.
func (s *session) countTargets(n int) error {
	if n > 0 {
		s.targetless = 0
		return nil
	}
	s.targetless++
	const reason = "all of its tokens are prompts or padding"
	if s.targetless >= s.cfg.Guard.MaxSkips {
		return &dataset.Error{Err: fmt.Errorf("the batches of %d steps in a row had no target: of each, %s\n"+
			"  look at the data with `anneal data inspect`, and at the --prompt-end it was built with",
			s.targetless, reason)}
	}
	if !s.warnedTargetless {
		s.warnedTargetless = true
		s.Warn(fmt.Sprintf("the batch of step %d has no target: %s; the step changes nothing",
			s.trainer.Position().Step, reason))
	}
	return nil
}

// tellRise warns of a layer whose gradient has grown and stays large.
func (s *session) tellRise(e train.Event) {
	if r := e.Rise; r != nil {
		s.Warn(fmt.Sprintf("the gradient of layer %d (of %d) has grown from %.3g to %.3g by step %d and stays there; "+
			"divergence often follows\n  look at grad_norms in metrics.jsonl; if the loss rises, rewind to an earlier "+
			"checkpoint with a lower optimizer.lr, a longer schedule.warmup, or model.qk_norm in a new run",
			r.Layer, s.cfg.Model.Layers, r.From, r.To, e.Step))
	}
}

// locate adds the step and the directory of the run to an error of the machine.
func (s *session) locate(err error) error {
	if failed := (*train.DeviceError)(nil); errors.As(err, &failed) {
		failed.Step, failed.Dir = s.trainer.Position().Step, s.Dir
	}
	if corrupt := (*train.CorruptionError)(nil); errors.As(err, &corrupt) {
		corrupt.Dir = s.Dir
	}
	return err
}

// Exists reports whether dir holds a run.
func Exists(dir string) bool {
	_, err := os.Stat(runDir(dir).config())
	return err == nil
}
