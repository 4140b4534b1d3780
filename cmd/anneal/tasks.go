package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// taskFlags divide the work of a command among processes that share files.
type taskFlags struct {
	TaskIndex *int          `placeholder:"N" help:"Which task of --task-count this is, from 0. Every task names the same inputs and the same --out. Default: from Slurm, Kubernetes or MPI."`
	TaskCount *int          `placeholder:"N" help:"Tasks that share the work through a common file system."`
	Wait      time.Duration `placeholder:"2h" help:"How long to wait for other tasks before deduplication. Default: without limit."`
}

// tasks returns the index of this task and the number of tasks, from flags or else from the environment.
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

// anyCount returns the environment with the largest possible count for launchers that set only the index.
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
