package run

import (
	"log/slog"
	"os"
	"time"

	"anneal/checkpoint"
	"anneal/comm"
	"anneal/comm/nccl"
	"anneal/config"
	"anneal/device"
	"anneal/plan"
	"anneal/prepare"
	"anneal/sinks"
	"anneal/tasks"
	"anneal/train"
)

// session is a run in this process, or on one rank of it. Only the leader has store, metrics, journal and watchdog.
type session struct {
	Options
	cfg       *config.Config
	dir       runDir
	world     group
	beside    int       // number of ranks on this host, including this one
	place     int       // number of this rank among them
	cards     comm.Comm // connects ranks that have a GPU each; nil for other devices
	dev       device.Device
	corpus    *prepare.Corpus
	trainer   *train.Trainer
	reference *Weights // of a run that weighs domains; else nil
	store     *checkpoint.Store
	tensors   []checkpoint.Tensor // all tensors of this rank
	owned     []checkpoint.Tensor // the tensors that this rank writes
	metrics   *metricsFile
	journal   *journal
	sinks     *sinks.Sinks   // nil before the run begins
	watch     *watchdog      // nil if nobody watches
	exit      func(code int) // os.Exit, except in tests

	peak       float64 // GFLOP/s of the device at the run's precision; 0 if it is not known
	course     *plan.Course
	bytes      int64           // of a checkpoint's tensors, of all ranks
	last       state           // results of the last step and evaluation
	exam       *tasks.Exam     // nil without eval.tasks
	told       map[string]bool // tasks whose items were warned of
	prompts    *prompts        // nil without samples.every
	saving     saving
	branchText []byte   // of branch.json; nil unless the run is a new branch
	early      []string // warnings for the journal, which is not open yet
	parts      parts
	look       *lookout // nil on a rank alone
	fault      fault
	done       bool // the step just made is the last, by number or by time
	clock      clock
	pace       *pace // nil if the length of the run is fixed
	phases     phaseClock
	toldPhases [train.Phases]time.Duration // phases.spent at the last step that was sent to sinks
	made       int                         // steps of this process
	restarts   int                         // commands that trained the run before
	started    time.Time

	warnedTextless bool // warned that no validation split has text
	targetless     int  // steps in a row whose batch had no target

	warnedTargetless bool // warned that a batch had no target
}

func newSession(cfg *config.Config, o Options) (*session, error) {
	s := &session{Options: o, cfg: cfg, dir: runDir(o.Dir), saving: saving{step: -1}, started: o.begun, exit: os.Exit}
	if s.World == nil {
		s.World = comm.Alone{}
	}
	if s.World.Size() > 1 {
		s.look = newLookout(Timeout(cfg))
		s.World = watchedComm{s.World, s.look, &s.fault}
	}
	if s.world = s.group(); s.Warn == nil {
		s.Warn = func(string) {}
	}
	if err := s.lost(s.open()); err != nil {
		s.end(&err)
		return nil, err
	}
	return s, nil
}

func (s *session) open() error {
	err := s.meetHosts()
	if err == nil {
		err = s.openInputs()
	}
	if err := s.world.agree(err); err != nil {
		return err
	}
	if err := s.openTasks(); err != nil {
		return err
	}
	if err := s.openPrompts(); err != nil {
		return err
	}
	if err := s.world.agree(s.joinCards()); err != nil {
		return err
	}
	if err := s.checkPeers(); err != nil {
		return err
	}
	if err := s.world.agree(s.outOfMemory(s.checkMemory())); err != nil {
		return err
	}
	if s.trainer, err = train.NewRank(s.cfg, s.dev, s.World); err != nil {
		return s.outOfMemory(err)
	}
	if s.cfg.Distill.On() {
		if err := s.world.agree(loadTeacher(s.trainer, s.cfg, s.corpus)); err != nil {
			return err
		}
	}
	if s.DRO != nil {
		if err := s.world.agree(s.weighDomains()); err != nil {
			return err
		}
	}
	s.tensors, s.owned = checkpointTensors(s.trainer.Tensors()), checkpointTensors(s.trainer.Owned())
	if s.course, err = plan.NewCourse(s.cfg, s.plannedTime()); err != nil {
		return err
	}
	s.last = newState()
	return s.world.lead(func() error { // while the other ranks are idle
		s.peak = s.dev.Peak(s.trainer.Policy().Operand) * float64(s.world.Size())
		return nil
	})
}

// openInputs opens the data and the device.
func (s *session) openInputs() (err error) {
	if s.fault, err = readFault(); err != nil {
		return err
	}
	if n := s.world.Size(); s.cfg.Parallel.Ranks != n {
		s.cfg.Derive("parallel.ranks", n, "the launcher")
	}
	if s.corpus, err = prepare.OpenCorpus(s.cfg); err != nil {
		return err
	}
	if err := s.cfg.Validate(); err != nil {
		return err
	}
	if err := takeTeacher(s.cfg); err != nil {
		return err
	}
	if s.dev, err = train.OpenRankDevice(s.cfg, s.Device, s.Threads, s.place); err != nil {
		return err
	}
	return s.openTraining(s.cfg)
}

// joinCards lets ranks with a GPU each send tensors from card to card.
func (s *session) joinCards() error {
	watched, ok := s.World.(watchedComm)
	if !ok {
		return nil
	}
	cards, err := nccl.Join(watched.Comm, s.dev, Timeout(s.cfg))
	if err != nil {
		return err
	}
	if cards != watched.Comm {
		s.cards, watched.Comm = cards, cards
		s.World = watched
		s.world = s.group()
	}
	return nil
}

// openTraining opens the inputs of the run, whose order and mixture are those of cfg.
func (s *session) openTraining(cfg *config.Config) error {
	if err := s.corpus.OpenTraining(cfg); err != nil || s.DRO == nil {
		return err
	}
	return s.corpus.TakeTurns(s.cfg.Train.MicroBatch)
}

func (s *session) openStore(origin checkpoint.Origin) (err error) {
	o := checkpoint.Options{
		Keep: s.cfg.Checkpoint.Keep, Synchronous: !s.snapshotFits(), Origin: origin, Together: !s.world.alone(),
		Log: slog.New(warnings{func(text string) { s.Warn(text) }}),
	}
	if o.Synchronous {
		s.Warn("memory is short: training waits while checkpoints are written")
	}
	s.store, err = checkpoint.Open(s.dir.checkpoints(), o)
	return err
}

func (s *session) close() {
	s.closeFiles()
	s.free()
}

// closeFiles closes the files that the run writes.
func (s *session) closeFiles() {
	if s.metrics != nil {
		s.metrics.close()
	}
	s.watch.close()
	s.sinks.Close()
	s.journal.close()
	s.parts.close()
	s.look.close()
	if s.store != nil {
		s.store.Close()
	}
}

// free frees memory, devices and data.
func (s *session) free() {
	if s.cards != nil {
		s.cards.Close()
	}
	if s.trainer != nil {
		s.trainer.Close()
	}
	if s.reference != nil {
		s.reference.Close()
	}
	if s.dev != nil {
		s.dev.Close()
	}
	if s.corpus != nil {
		s.corpus.Close()
	}
}
