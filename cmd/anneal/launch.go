package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// launcher is how one kind of job tells its processes apart.
type launcher struct {
	name         string
	index, count string // variables
	try          string // the remedy if the second is missing
}

// Jobs start processes in two ways that may be nested: several copies of a job, and several processes in each copy. For
// processes, the first variable that is set counts, because processes that mpirun starts inherit those of Slurm and
// PMI.
var (
	copies = []launcher{
		{slurmArray, "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "--task-index and --task-count"},
		kubernetes,
	}
	processes = []launcher{
		{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun, or --task-index and --task-count"},
		{"MPICH", "PMI_RANK", "PMI_SIZE", "mpiexec, or --task-index and --task-count"},
		{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun, or --task-index and --task-count"},
	}
)

const slurmArray = "Slurm array"

var (
	kubernetes = launcher{"Kubernetes job", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS",
		"env: JOB_COMPLETIONS in the manifest, as many as spec.completions, or --task-count"}
	torchrun = launcher{"torchrun", "RANK", "WORLD_SIZE", "torchrun, or --rank and --ranks"}
)

// share is a process's place among others.
type share struct {
	index, count int
	from         string // the flags or variables that say so; "" if none do
}

// first returns the share given by the first launcher that is present.
func first(launchers []launcher, env func(string) string) (share, error) {
	for _, l := range launchers {
		// Slurm also sets the index for batch scripts, which are not tasks.
		if env(l.count) != "" || env(l.index) != "" && l.name != "srun" {
			return l.read(env)
		}
	}
	return share{count: 1}, nil
}

func (l launcher) read(env func(string) string) (share, error) {
	for _, name := range []string{l.index, l.count} {
		if env(name) == "" {
			return share{}, &usageError{fmt.Sprintf("%s: %s is set and %s is not", l.name, other(name, l), name),
				"try " + l.try}
		}
	}
	var values [5]int
	names := []string{l.index, l.count}
	if l.name == slurmArray {
		names = append(names, "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP")
	}
	for i, name := range names {
		if i > 1 && env(name) == "" {
			continue
		}
		n, err := strconv.Atoi(env(name))
		if err != nil || n < 0 || n > math.MaxInt32 {
			return share{}, &usageError{fmt.Sprintf("%s: %s is %q, not a number of tasks", l.name, name, env(name)),
				"try --task-index and --task-count"}
		}
		values[i] = n
	}
	index, count, least, most, step := values[0], values[1], values[2], values[3], max(values[4], 1)
	gaps := env("SLURM_ARRAY_TASK_MAX") != "" && l.name == slurmArray && (most-least)/step+1 != count
	if index -= least; gaps || index%step != 0 || index/step >= count || index < 0 || count < 1 {
		return share{}, &usageError{fmt.Sprintf("%s: %s is %s of %s = %s tasks",
			l.name, l.index, env(l.index), l.count, env(l.count)),
			"try an array without gaps, such as --array=0-15, or --task-index and --task-count"}
	}
	return share{index / step, count, fmt.Sprintf(", %s=%s %s=%s", l.index, env(l.index), l.count, env(l.count))}, nil
}

func other(name string, l launcher) string {
	if name == l.index {
		return l.count
	}
	return l.index
}

// rankOf returns the rank of this process and the number of ranks. They come from flags, or else from the first
// launcher that sets both variables. Without either, the process is the only rank.
func rankOf(rank, ranks *int, env func(string) string) (share, error) {
	if rank != nil {
		return flaggedRank(*rank, ranks)
	}
	for _, l := range slices.Concat(processes, []launcher{kubernetes, torchrun}) {
		if env(l.index) == "" || env(l.count) == "" {
			continue // any program may set RANK alone, and the copies of an indexed job may be separate runs
		}
		at, err := l.read(env)
		if err != nil {
			return share{}, &usageError{
				fmt.Sprintf("%s=%q and %s=%q, which %s sets, do not say which of several ranks this process is",
					l.index, env(l.index), l.count, env(l.count), l.name),
				"unset them to train by itself, or try --rank and --ranks",
			}
		}
		if ranks != nil && at.count > 1 && at.count != *ranks {
			return share{}, &usageError{
				fmt.Sprintf("--ranks %d, but %s has started %d processes", *ranks, l.name, at.count),
				"try without --ranks: every process is a rank",
			}
		}
		at.from = strings.TrimPrefix(at.from, ", ")
		return at, nil
	}
	return share{count: 1}, nil
}

// flaggedRank is the rank that --rank and --ranks name.
func flaggedRank(rank int, ranks *int) (share, error) {
	const try = "try --rank 0 --ranks 4, and --rank 1 and so on in the other processes"
	switch {
	case ranks == nil:
		return share{}, &usageError{fmt.Sprintf("--rank %d needs --ranks, the number of them", rank), try}
	case rank < 0 || rank >= *ranks:
		return share{}, &usageError{fmt.Sprintf("--rank %d is not one of %d ranks, counted from 0", rank, *ranks), try}
	}
	return share{rank, *ranks, fmt.Sprintf("--rank %d --ranks %d", rank, *ranks)}, nil
}
