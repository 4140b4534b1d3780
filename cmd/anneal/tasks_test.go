package main

import (
	"strings"
	"testing"
)

// Flags take precedence over the environment, nested launchers multiply, and inconsistent values are an error with a
// remedy.
func TestTasksFromFlagsAndEnvironment(t *testing.T) {
	n := func(v int) *int { return &v }
	array := "SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=6 " +
		"SLURM_ARRAY_TASK_STEP=1 SLURM_PROCID=0 SLURM_NTASKS=1"
	for _, c := range []struct {
		name         string
		flags        taskFlags
		env          string
		index, count int
		fault        string
	}{
		{"nothing", taskFlags{}, "", 0, 1, ""},
		{"flags", taskFlags{TaskIndex: n(2), TaskCount: n(3)}, array, 2, 3, ""},
		{"array from 3", taskFlags{}, array, 2, 4, ""},
		{"array by steps", taskFlags{}, "SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0 " +
			"SLURM_ARRAY_TASK_MAX=6 SLURM_ARRAY_TASK_STEP=2", 3, 4, ""},
		{"array of one that failed", taskFlags{},
			"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=1 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=3", 0, 1, ""},
		{"array with gaps", taskFlags{}, "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 " +
			"SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=1", 0, 0, "array without gaps"},
		{"srun", taskFlags{}, "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=8", 3, 8, ""},
		{"batch script", taskFlags{}, "SLURM_PROCID=0 SLURM_NTASKS=8", 0, 1, ""},
		{"array of sruns", taskFlags{}, array + " SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8", 2*8 + 1, 32, ""},
		{"Kubernetes", taskFlags{}, "JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=4", 3, 4, ""},
		{"Kubernetes without count", taskFlags{}, "JOB_COMPLETION_INDEX=3", 0, 0,
			"JOB_COMPLETIONS is not\n  try env: JOB_COMPLETIONS"},
		{"Kubernetes, count by flag", taskFlags{TaskCount: n(4)}, "JOB_COMPLETION_INDEX=3", 3, 4, ""},
		{"Kubernetes, another count by flag", taskFlags{TaskCount: n(4)},
			"JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=9", 3, 4, ""},
		{"Open MPI inside srun", taskFlags{},
			"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", 5, 6, ""},
		{"MPICH", taskFlags{}, "PMI_RANK=0 PMI_SIZE=2", 0, 2, ""},
		{"rank without size", taskFlags{}, "PMI_RANK=0", 0, 0, "PMI_RANK is set and PMI_SIZE is not"},
		{"size without rank", taskFlags{}, "OMPI_COMM_WORLD_SIZE=4", 0, 0,
			"OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not"},
		{"rank beyond size", taskFlags{}, "PMI_RANK=4 PMI_SIZE=4", 0, 0, "PMI_RANK is 4 of PMI_SIZE = 4 tasks"},
		{"no number", taskFlags{}, "PMI_RANK=x PMI_SIZE=4", 0, 0, `PMI_RANK is "x"`},
		{"index alone", taskFlags{TaskIndex: n(1)}, "", 0, 0, "needs the number of tasks"},
		{"count alone", taskFlags{TaskCount: n(4)}, "", 0, 0, "--task-count 4 needs the index of this task"},
		{"count one", taskFlags{TaskCount: n(1)}, array, 0, 1, ""},
		{"index too large", taskFlags{TaskIndex: n(4), TaskCount: n(4)}, "", 0, 0, "not one of 4 tasks"},
		{"index of the environment too large", taskFlags{TaskCount: n(2)}, array, 0, 0,
			"not one of 2 tasks, counted from 0; the index is from the environment, SLURM_ARRAY_TASK_ID=5"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, err := c.flags.tasks(func(name string) string { return env[name] })
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "\n  try ") {
				t.Errorf("%s: %+v, %v, want an error with %q", c.name, got, err, c.fault)
			}
		case err != nil || got.index != c.index || got.count != c.count:
			t.Errorf("%s: task %d of %d, %v; want %d of %d", c.name, got.index, got.count, err, c.index, c.count)
		}
	}
}
