package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"anneal/bench"
	"anneal/checkpoint"
	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/lab"
	"anneal/prepare"
	"anneal/run"
	"anneal/tasks"
	"anneal/tokenizer"
	"anneal/train"
	"anneal/use"
)

// The exit codes, as docs/commands.md lists them.
const (
	exitOK       = 0
	exitInternal = 1 // a defect in anneal
	exitUsage    = 2 // the command line or the config
	// text, a tokenizer or a data set cannot be used, a file cannot be read or written, or too much of the text was
	// lost
	exitData       = 3
	exitDiverged   = 4               // training stopped by the guard, or a run that it stopped
	exitCheckpoint = 5               // no usable checkpoint
	exitResources  = 6               // memory or disk does not suffice, or the device failed
	exitCheck      = 7               // a check failed: `anneal mup check`, `anneal improve`, `anneal bench diff`
	exitStalled    = run.ExitStalled // 8, a stalled run that watchdog.exit ended, or ranks that cannot continue
	exitCorrupt    = 9               // the same computation gave different bits
	exitLocked     = 10              // another process holds the lock of the run
	exitStopped    = 75              // stopped by a signal, state saved: it can be continued
	exitHangup     = 129
	exitInterrupt  = 130
	exitQuit       = 131 // SIGQUIT: stacks were written
	exitPipe       = 141 // nobody reads the results any more
	exitTerminate  = 143
)

// usageError is a command line that cannot be carried out.
type usageError struct{ message, hint string }

func (e *usageError) Error() string { return strings.TrimRight(e.message+"\n  "+e.hint, "\n ") }

// asUsage marks a package's error as a usage error: the request is not possible.
func asUsage(err error) error {
	message, hint, _ := strings.Cut(err.Error(), "\n")
	return &usageError{message, strings.TrimSpace(hint)}
}

// stopped is a run that a signal ended after its state was saved.
type stopped struct{ message string }

func (e *stopped) Error() string { return e.message }

// asData marks an error of the packages that read text, tokenizers and data sets.
func asData(err error) error {
	if err == nil {
		return nil
	}
	return &dataset.Error{Err: err}
}

// exitCode classifies an error by the type its package gave it.
func exitCode(err error) int {
	var (
		tier  *isa.Error
		usage *usageError
		asked *tokenizer.OptionError
		saved *stopped
		conf  config.Problem
		task  *tasks.Problem
		fault *checkpoint.Fault
		held  *checkpoint.LockedError
		stop  *interrupted
		away  *run.DivergedError
		ruin  *run.DivergedRunError
		flip  *train.CorruptionError
		large *train.MemoryError
		room  *machine.RoomError
		gone  *train.DeviceError
		told  *run.RankError
		unfit *run.UnfitError
		ranks *comm.LostError
		other *comm.MismatchError
		panic *run.PanicError
		data  *dataset.Error
		lost  *incomplete
		slope *lab.NotFlatError
		none  *lab.NothingAcceptedError
		slow  *bench.SlowerError
		back  *run.RewindError
		kind  *fileio.TargetError
		path  *fs.PathError
		link  *os.LinkError
	)
	switch {
	case errors.As(err, &told) && told.Code > 0:
		return told.Code
	case errors.As(err, &unfit):
		return exitStalled
	case errors.As(err, &usage), errors.As(err, &asked), errors.As(err, &back), errors.As(err, &kind),
		errors.As(err, &conf), errors.As(err, &task), errors.As(err, &tier), errors.Is(err, run.ErrExists),
		errors.Is(err, run.ErrOccupied), errors.Is(err, dataset.ErrExists), errors.Is(err, run.ErrNoRun),
		errors.Is(err, use.ErrNoText):
		return exitUsage
	case errors.As(err, &saved):
		return exitStopped
	case errors.As(err, &ranks), errors.As(err, &other), errors.As(err, &panic):
		return exitStalled
	case errors.As(err, &stop):
		return stop.code()
	case errors.As(err, &held):
		return exitLocked
	case errors.As(err, &away), errors.As(err, &ruin):
		return exitDiverged
	case errors.As(err, &flip):
		return exitCorrupt
	case errors.As(err, &slope), errors.As(err, &none), errors.As(err, &slow):
		return exitCheck
	case errors.As(err, &large), errors.As(err, &room), errors.As(err, &gone), errors.Is(err, syscall.EMFILE),
		errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		errors.Is(err, syscall.EFBIG), errors.Is(err, syscall.ENOMEM):
		return exitResources
	case errors.As(err, &fault), errors.Is(err, checkpoint.ErrNone), errors.Is(err, checkpoint.ErrFuture),
		errors.Is(err, checkpoint.ErrOtherRun):
		return exitCheckpoint
	// The command line is wrong: only flags such as --out name directories to make, and only arguments name a file
	// that is a directory, or the reverse.
	case errors.As(err, &path) && path.Op == "mkdir" && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return exitUsage
	case errors.As(err, &data), errors.As(err, &lost), errors.Is(err, prepare.ErrNoGoSource),
		errors.Is(err, errStalled), errors.As(err, &path), errors.As(err, &link), errors.Is(err, fs.ErrNotExist):
		return exitData
	}
	return exitInternal
}

// speaks reports whether this process prints its error; only one rank of a run does. If so, speaks also records the
// error in the run's directory.
func (s *session) speaks(err error, code int) bool {
	saved := (*stopped)(nil)
	switch {
	case errors.As(err, &saved) && s.world.Rank() > 0:
		return false
	case run.ToldElsewhere(err):
		if !run.Shared(err) {
			time.Sleep(tellPatience)
		}
		return false
	}
	return s.leave(err, code)
}

// tellPatience is how long a rank waits for another one to report the error, because launchers kill all ranks once one
// has ended.
const tellPatience = time.Second

// leave records in the run's directory how training ended. It reports whether this process is the first rank of the
// run to do so.
func (s *session) leave(err error, code int) (first bool) {
	if !s.begun.Load() || err == nil && s.world.Rank() > 0 {
		return true
	}
	e := run.Exit{Code: code, Rank: s.world.Rank(), Resume: code == exitStopped || code == exitStalled}
	if err != nil {
		e.Reason = message(err)
	}
	return run.WriteExit(s.run.Load().(string), e)
}
