package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// taskFlags share the work of a command out to processes that see the same files.
type taskFlags struct {
	TaskIndex *int          `placeholder:"N" help:"Which task of --task-count this is, from 0. Every task names the same inputs and the same --out. Default: from Slurm, Kubernetes or MPI."`
	TaskCount *int          `placeholder:"N" help:"Tasks that share the work through a common file system."`
	Wait      time.Duration `placeholder:"2h" help:"How long to wait for other tasks before deduplication. Default: without limit."`
}

// launcher is how one kind of job tells its processes apart.
type launcher struct {
	name         string
	index, count string // variables
	try          string // where the second is missing
}

// Jobs start processes in two ways that may be nested: several copies of a job, and several processes in each copy. For
// processes, the first variable that is set counts, because processes that mpirun starts inherit those of Slurm and
// PMI.
var (
	copies = []launcher{
		{slurmArray, "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "--task-index and --task-count"},
		{"Kubernetes job", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS",
			"env: JOB_COMPLETIONS in the manifest, as many as spec.completions, or --task-count"},
	}
	processes = []launcher{
		{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun, or --task-index and --task-count"},
		{"MPICH", "PMI_RANK", "PMI_SIZE", "mpiexec, or --task-index and --task-count"},
		{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun, or --task-index and --task-count"},
	}
)

const slurmArray = "Slurm array"

// share is a process's place among others.
type share struct {
	index, count int
	from         string // what says so; "" if nothing does
}

// tasks says which task of how many this is: what flags say, and where they are silent what the environment says.
func (f taskFlags) tasks(env func(string) string) (share, error) {
	if f.TaskIndex != nil && f.TaskCount != nil {
		return flagged(*f.TaskIndex, *f.TaskCount, "")
	}
	if f.TaskCount != nil {
		env = anyCount(env)
	}
	outer, err := first(copies, env)
	if err != nil {
		return share{}, err
	}
	inner, err := first(processes, env)
	if err != nil {
		return share{}, err
	}
	all := share{outer.index*inner.count + inner.index, outer.count * inner.count, outer.from + inner.from}
	switch {
	case f.TaskIndex != nil && all.from == "":
		return share{}, &usageError{fmt.Sprintf("--task-index %d needs the number of tasks", *f.TaskIndex),
			"try --task-count 16"}
	case f.TaskIndex != nil:
		return flagged(*f.TaskIndex, all.count, "; the count is from the environment"+all.from)
	case f.TaskCount != nil && *f.TaskCount == 1:
		return share{count: 1}, nil
	case f.TaskCount != nil && all.from == "":
		return share{}, &usageError{fmt.Sprintf("--task-count %d needs the index of this task", *f.TaskCount),
			"try --task-index 0, and 1 and so on in the other tasks"}
	case f.TaskCount != nil:
		return flagged(all.index, *f.TaskCount, "; the index is from the environment"+all.from)
	}
	return all, nil
}

func flagged(index, count int, from string) (share, error) {
	if count < 1 || index < 0 || index >= count {
		return share{}, &usageError{fmt.Sprintf("--task-index %d is not one of %d tasks, counted from 0%s",
			index, count, from), "try --task-index 0"}
	}
	return share{index: index, count: count}, nil
}

// anyCount is the environment with a count beyond all for launchers that tell only the index.
func anyCount(env func(string) string) func(string) string {
	return func(name string) string {
		for _, l := range slices.Concat(copies, processes) {
			if name == l.count && env(name) == "" && env(l.index) != "" && l.name != "srun" {
				return fmt.Sprint(math.MaxInt32)
			}
		}
		return env(name)
	}
}

// first returns the share given by the first launcher that is present.
func first(launchers []launcher, env func(string) string) (share, error) {
	for _, l := range launchers {
		// Slurm sets the index for batch scripts too, which are no tasks.
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
