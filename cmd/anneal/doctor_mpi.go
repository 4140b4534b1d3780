package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/comm/mpi"
)

type doctorMPICmd struct{}

func (doctorMPICmd) Help() string {
	return example("anneal doctor mpi", "mpirun -n 4 anneal doctor mpi",
		"ANNEAL_MPI=/opt/mpich/lib/libmpi.so.12 anneal doctor mpi") +
		"\n\nIt shows the MPI library that a run would use, and what was done about its signal handlers. Started by " +
		"mpirun or srun, it also measures how fast the ranks exchange data."
}

func (doctorMPICmd) Run(s *session) error {
	start := time.Now()
	if at, err := rankOf(nil, nil, os.Getenv); err == nil && at.index > 0 {
		s.hush()
	}
	group, err := mpi.Open(mpi.Options{Timeout: time.Minute})
	if err != nil {
		return asUsage(err)
	}
	s.world = group
	info, speed := group.Info(), mpi.Speed{}
	if info.Size > 1 {
		if speed, err = mpi.Measure(group); err != nil {
			return err
		}
	}
	s.printf("library     %s, %s\n", info.Library, info.Path)
	s.printf("            ABI: %s; threads: %s\n", info.ABI, info.Threads)
	s.printf("launcher    %s\n", info.Launcher)
	signals := "the library has changed no handlers"
	if len(info.Signals) > 0 {
		signals = fmt.Sprintf("the library took %s; the handlers of Go are back", strings.Join(info.Signals, ", "))
	}
	s.printf("signals     %s\n", signals)
	s.printf("ranks       %d on %s\n", info.Size, strings.Join(slices.Compact(slices.Clone(info.Hosts)), ", "))
	if info.Size > 1 {
		s.printf("latency     %.0f µs for a message of 8 bytes from every rank to every other\n",
			float64(speed.Latency)/float64(time.Microsecond))
		s.printf("bandwidth   %.2f GB/s sent by every rank, and received at the same time\n", speed.Bandwidth/1e9)
	} else {
		s.printf("            to measure the ranks: mpirun -n 2 anneal doctor mpi\n")
	}
	s.closing("checked MPI", "", time.Since(start), "mpirun -n 2 anneal train CONFIG --out RUN")
	return s.emit(map[string]any{"mpi": info, "speed": speed})
}
