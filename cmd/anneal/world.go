package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/comm"
	"anneal/comm/mpi"
	"anneal/config"
	"anneal/run"
)

// rankFlags say which rank of a run this process is, or how many ranks it is by itself.
type rankFlags struct {
	Rank  *int `placeholder:"N" help:"Which rank this process is, from 0. Default: from MPI, Slurm, Kubernetes or torchrun."`
	Ranks *int `placeholder:"N" help:"Ranks that share the work: parallel.ranks=N."`
}

// join opens the group of ranks that this process was started in. Only rank 0 then speaks.
func (s *session) join(f *rankFlags) error {
	s.joined = true
	at, err := rankOf(f.Rank, f.Ranks, os.Getenv)
	if err != nil {
		return err
	}
	if at.index > 0 {
		s.hush()
	}
	if at.count == 1 {
		return nil
	}
	world, err := openRanks(at)
	if err == nil {
		s.world = world
	}
	return err
}

// pretend sets the number of ranks for a plan to that of the launcher, without connecting to them. Only rank 0 speaks.
func (s *session) pretend(f *rankFlags) error {
	at, err := rankOf(f.Rank, f.Ranks, os.Getenv)
	if err != nil {
		return err
	}
	if at.index > 0 {
		s.hush()
	}
	if at.count > 1 {
		f.Ranks = &at.count
	}
	return nil
}

// openRanks connects this process with the other ranks.
func openRanks(at share) (comm.Comm, error) {
	if !mpi.Built() {
		return nil, &usageError{
			fmt.Sprintf("this process is rank %d of %d (%s), but this binary cannot reach the others: it has no MPI",
				at.index, at.count, at.from),
			"build it with `go build -tags mpi ./cmd/anneal`; parallel.ranks=N needs no launcher on one machine; " +
				"--rank 0 --ranks 1 trains by itself",
		}
	}
	g, err := mpi.Open(mpi.Options{})
	if err != nil {
		return nil, asUsage(err)
	}
	if g.Rank() != at.index || g.Size() != at.count {
		return nil, &usageError{
			fmt.Sprintf("this process is rank %d of %d (%s), but for MPI it is rank %d of %d",
				at.index, at.count, at.from, g.Rank(), g.Size()),
			"start it with mpirun, mpiexec or srun --mpi, without --rank, and `anneal doctor mpi` in the same way",
		}
	}
	return g, nil
}

// wait sets how long ranks wait for each other from the run's config.
func (s *session) wait(cfg *config.Config) {
	if g, ok := s.world.(mpi.Group); ok {
		g.SetTimeout(run.Timeout(cfg))
	}
}

// hush silences the output that rank 0 prints for all ranks. Errors that only this rank has are still printed.
func (s *session) hush() {
	s.told, s.stderr, s.stdout, s.json = s.stderr, io.Discard, &results{w: io.Discard}, false
	s.status = newStatus(io.Discard)
}

// rankOverrides adds the number of ranks from flags or a launcher to overrides, which must not contradict it.
func (s *session) rankOverrides(f rankFlags, overrides []string) ([]string, error) {
	n, from := s.world.Size(), "the launcher has started %d ranks"
	if n == 1 {
		if f.Ranks == nil {
			return overrides, nil
		}
		n, from = *f.Ranks, "--ranks %d"
	}
	if n < 1 {
		return nil, &usageError{fmt.Sprintf("--ranks %d: a run has at least one rank", n), "try --ranks 2"}
	}
	want := fmt.Sprintf("parallel.ranks=%d", n)
	for _, o := range overrides {
		if strings.HasPrefix(o, "parallel.ranks=") && o != want {
			return nil, &usageError{fmt.Sprintf("%s, but "+from, o, n), "try without " + o}
		}
	}
	return append(slices.Clone(overrides), want), nil
}

// refuseLauncher returns an error if a launcher has started several processes of a command that trains in one process:
// each would do the same work in the same directory.
func (s *session) refuseLauncher() error {
	for _, l := range processes {
		if os.Getenv(l.index) == "" || os.Getenv(l.count) == "" {
			continue
		}
		at, err := rankOf(nil, nil, os.Getenv)
		if err != nil || at.count == 1 {
			return err
		}
		if at.index > 0 {
			s.hush()
			s.told = nil             // rank 0 reports it
			time.Sleep(tellPatience) // because the launcher ends the others once this one has ended
		}
		return &usageError{
			fmt.Sprintf("this command trains in one process, but %s has started %d", l.name, at.count),
			fmt.Sprintf("try without the launcher; parallel.ranks=%d makes ranks of one process", at.count),
		}
	}
	return nil
}

// together shares err, the outcome of this rank's work, with all ranks, and returns an error unless all succeeded.
func (s *session) together(err error) error { return run.Agree(s.world, err, exitCode) }
