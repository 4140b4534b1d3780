package main

import (
	"fmt"
	"io"
	"os"

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
func (s *session) join(f rankFlags) error {
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

// wait has ranks wait for each other as long as a run says.
func (s *session) wait(cfg *config.Config) {
	if g, ok := s.world.(mpi.Group); ok {
		g.SetTimeout(run.Timeout(cfg))
	}
}

// hush keeps to itself what rank 0 says for all. Errors that only this rank knows of are still told.
func (s *session) hush() {
	s.told, s.stderr, s.stdout, s.json = s.stderr, io.Discard, &results{w: io.Discard}, false
	s.status = newStatus(io.Discard)
}

// rankOverrides returns the values of the config that follow from the ranks.
func (s *session) rankOverrides(f rankFlags) []string {
	switch {
	case s.world.Size() > 1:
		return []string{fmt.Sprintf("parallel.ranks=%d", s.world.Size())}
	case f.Ranks != nil:
		return []string{fmt.Sprintf("parallel.ranks=%d", *f.Ranks)}
	}
	return nil
}

// together waits for all ranks, each with what became of its own work, and returns an error unless all went well.
func (s *session) together(err error) error { return run.Agree(s.world, err, exitCode) }
