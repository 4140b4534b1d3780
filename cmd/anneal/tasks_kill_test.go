package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"anneal/internal/filetest"
)

const sharedPipeline = `signals: true
stages:
  - normalize
  - gopher_quality: {words: {min: 20}}
  - dedup: {exact: [document, line], verify: 0.7}
  - gopher_repetition
  - pii
`

// sharedInput writes files of JSON lines, some of them copies, and the pipeline.
func sharedInput(t *testing.T) (w workshop) {
	w = workshop{t, t.TempDir()}
	r := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("the be to of and that have with a in river stone letter garden window paper morning " +
		"quiet water table")
	var all []string
	if err := os.Mkdir(w.path("crawl"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		var b strings.Builder
		for range 60 {
			var text strings.Builder
			for range 60 + r.IntN(400) {
				fmt.Fprintf(&text, "%s%d ", words[r.IntN(len(words))], r.IntN(100))
				if r.IntN(12) == 0 {
					text.WriteString("the end.\n")
				}
			}
			all = append(all, text.String())
			if r.IntN(4) == 0 {
				all[len(all)-1] = all[r.IntN(len(all))] + "and more"
			}
			line, _ := json.Marshal(map[string]string{"text": all[len(all)-1]})
			b.Write(append(line, '\n'))
		}
		write(t, w.path(fmt.Sprintf("crawl/%d.jsonl", i)), b.String())
	}
	write(t, w.path("p.yaml"), sharedPipeline)
	return w
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// outputs reads all files of a directory except the journals, whose order depends on timing.
func outputs(t *testing.T, dir string) map[string]string { return filetest.Contents(t, dir, "journal") }

// Four processes, which are killed one after another at random instants and started again, write the same output as
// one process.
func TestKilledTasksStartedAgainWriteTheSameBytes(t *testing.T) {
	w := sharedInput(t)
	command := []string{"data", "curate", w.path("p.yaml"), w.path("crawl"), "--split", "20kB"}
	v := w.object(exitOK, append(command, "--out", w.path("one"), "--threads", "1")...)
	if n := v["splits"].(float64); n < 60 {
		t.Fatalf("%v splits are too few", n)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const tasks, kills = 4, 8
	var errs [tasks]strings.Builder
	begin := func(i int) *exec.Cmd {
		cmd := exec.Command(exe, append(command, "--out",
			w.path("four"), "--threads", "1", "--task-index", fmt.Sprint(i), "--task-count", fmt.Sprint(tasks))...)
		cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
		cmd.Stderr = &errs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	var running [tasks]*exec.Cmd
	for i := range running {
		running[i] = begin(i)
	}
	killed := 0
	for range kills {
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		i := r.IntN(tasks)
		running[i].Process.Kill()
		if running[i].Wait() != nil {
			killed++
		}
		running[i] = begin(i)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("seed %d: task %d: %v\n%s", seed, i, err, errs[i].String())
		}
	}
	if killed == 0 {
		t.Errorf("seed %d: every task was done before it was killed", seed)
	}
	filetest.Same(t, fmt.Sprintf("seed %d, %d kills", seed, killed), outputs(t, w.path("four")),
		outputs(t, w.path("one")))
}

// The shell example runs, restarts a killed task, and writes the same output as one process; a usage error ends it.
func TestShellExampleRuns(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	w := sharedInput(t)
	w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("crawl"), "--out", w.path("one"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.path("anneal"), `#!/bin/sh
if [ "$8" = 2 ] && mkdir "`+w.path("once")+`"; then
	"`+exe+`" "$@" &
	sleep 0.05
	kill -9 $!
	exit 137
fi
exec "`+exe+`" "$@"
`)
	if err := os.Chmod(w.path("anneal"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(pipeline string) (string, error) {
		cmd := exec.Command("sh", "../../deploy/shell/curate.sh",
			w.path(pipeline), w.path("three"), "3", w.path("crawl"))
		cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1", "ANNEAL="+w.path("anneal"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := script("p.yaml")
	if err != nil || !strings.Contains(out, "task 2 ended with 137 (attempt 1 of 3)") {
		t.Fatalf("%v\n%s", err, out)
	}
	filetest.Same(t, "deploy/shell/curate.sh", outputs(t, w.path("three")), outputs(t, w.path("one")))
	write(t, w.path("bad.yaml"), "stages: [kode]\n")
	if out, err := script("bad.yaml"); err == nil || strings.Contains(out, "attempt") {
		t.Errorf("a pipeline with a mistake: %v\n%s", err, out)
	}
}

// The examples for Slurm, MPI and Kubernetes run in the environments that their launchers set, and write the same
// output as one process.
func TestExamplesOfLaunchersRun(t *testing.T) {
	w := sharedInput(t)
	w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("crawl"), "--out", w.path("one"))
	want := outputs(t, w.path("one"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	together := func(name string, n int, command func(i int) *exec.Cmd) {
		var group sync.WaitGroup
		for i := range n {
			cmd := command(i)
			cmd.Env = append(cmd.Env, "ANNEAL_TEST_COMMAND=1", "ANNEAL="+exe, "PATH="+os.Getenv("PATH"))
			group.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s, process %d: %v\n%s", name, i, err, out)
				}
			})
		}
		group.Wait()
		filetest.Same(t, name, outputs(t, w.path(name)), want)
	}

	if bash, err := exec.LookPath("bash"); err == nil {
		together("slurm", 3, func(i int) *exec.Cmd {
			cmd := exec.Command(bash, "../../deploy/slurm/curate.sbatch",
				w.path("p.yaml"), w.path("slurm"), w.path("crawl"))
			cmd.Env = []string{
				fmt.Sprint("SLURM_ARRAY_TASK_ID=", i+1), "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MIN=1",
				"SLURM_ARRAY_TASK_MAX=3", "SLURM_CPUS_PER_TASK=1",
			}
			return cmd
		})
		write(t, w.path("mpirun"), `[ "$1" = -n ] || exit 9
n=$2; shift 2
for i in $(seq 0 $((n - 1))); do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n "$@" & done
for i in $(seq "$n"); do wait -n || exit 1; done
`)
		write(t, w.path("start"), "#!"+bash+"\nexec "+bash+" "+w.path("mpirun")+` "$@"`+"\n")
		if err := os.Chmod(w.path("start"), 0o755); err != nil {
			t.Fatal(err)
		}
		together("mpi", 1, func(int) *exec.Cmd {
			cmd := exec.Command(bash, "../../deploy/mpi/curate.sh",
				"3", w.path("p.yaml"), w.path("mpi"), w.path("crawl"))
			cmd.Env = []string{"MPIRUN=" + w.path("start")}
			return cmd
		})
	}

	text, err := os.ReadFile("../../deploy/kubernetes/curate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Spec struct {
			Completions, Parallelism int
			Template                 struct {
				Spec struct {
					Containers []struct {
						Command []string
						Env     []struct{ Name, Value string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &job); err != nil {
		t.Fatal(err)
	}
	c := job.Spec.Template.Spec.Containers[0]
	if job.Spec.Completions != job.Spec.Parallelism || len(c.Env) != 1 ||
		c.Env[0].Value != fmt.Sprint(job.Spec.Completions) {
		t.Errorf("completions %d, parallelism %d, env %v", job.Spec.Completions, job.Spec.Parallelism, c.Env)
	}
	write(t, w.path("web.yaml"), sharedPipeline)
	together("clean", 3, func(i int) *exec.Cmd {
		var args []string
		for _, a := range c.Command[1:] {
			args = append(args, strings.Replace(a, "/data/", w.dir+"/", 1))
		}
		cmd := exec.Command(exe, args...)
		cmd.Env = []string{fmt.Sprint("JOB_COMPLETION_INDEX=", i), c.Env[0].Name + "=3"}
		return cmd
	})
}
