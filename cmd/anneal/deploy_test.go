//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"anneal/config"
)

// The published schemas of the objects in deploy/kubernetes, with the fields that these use. A field that is missing
// here or misplaced there is refused.
type (
	meta struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	amounts struct {
		CPU    string `yaml:"cpu"`
		Memory string `yaml:"memory"`
	}
	container struct {
		Name            string   `yaml:"name"`
		Image           string   `yaml:"image"`
		Command         []string `yaml:"command"`
		Args            []string `yaml:"args"`
		SecurityContext struct {
			RunAsUser int `yaml:"runAsUser"`
		} `yaml:"securityContext"`
		ReadinessProbe struct {
			TCPSocket struct {
				Port int `yaml:"port"`
			} `yaml:"tcpSocket"`
		} `yaml:"readinessProbe"`
		Env []struct {
			Name  string `yaml:"name"`
			Value string `yaml:"value"`
		} `yaml:"env"`
		Resources struct {
			Requests amounts `yaml:"requests"`
			Limits   amounts `yaml:"limits"`
		} `yaml:"resources"`
		Ports []struct {
			Name          string `yaml:"name"`
			ContainerPort int    `yaml:"containerPort"`
		} `yaml:"ports"`
		VolumeMounts []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	pod struct {
		Metadata meta `yaml:"metadata"`
		Spec     struct {
			RestartPolicy   string `yaml:"restartPolicy"`
			Subdomain       string `yaml:"subdomain"`
			SecurityContext struct {
				FSGroup int `yaml:"fsGroup"`
			} `yaml:"securityContext"`
			TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
			Containers                    []container `yaml:"containers"`
			Volumes                       []struct {
				Name                  string `yaml:"name"`
				PersistentVolumeClaim struct {
					ClaimName string `yaml:"claimName"`
				} `yaml:"persistentVolumeClaim"`
				Secret struct {
					SecretName  string `yaml:"secretName"`
					DefaultMode int    `yaml:"defaultMode"`
				} `yaml:"secret"`
			} `yaml:"volumes"`
		} `yaml:"spec"`
	}
	jobSpec struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int    `yaml:"completions"`
		Parallelism          int    `yaml:"parallelism"`
		BackoffLimit         int    `yaml:"backoffLimit"`
		BackoffLimitPerIndex int    `yaml:"backoffLimitPerIndex"`
		SuccessPolicy        struct {
			Rules []struct {
				SucceededIndexes string `yaml:"succeededIndexes"`
			} `yaml:"rules"`
		} `yaml:"successPolicy"`
		PodFailurePolicy struct {
			Rules []struct {
				Action      string `yaml:"action"`
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string `yaml:"operator"`
					Values        []int  `yaml:"values"`
				} `yaml:"onExitCodes"`
				OnPodConditions []struct {
					Type   string `yaml:"type"`
					Status string `yaml:"status"`
				} `yaml:"onPodConditions"`
			} `yaml:"rules"`
		} `yaml:"podFailurePolicy"`
		Template pod `yaml:"template"`
	}
	replica struct {
		Replicas      int    `yaml:"replicas"`
		RestartPolicy string `yaml:"restartPolicy"`
		Template      pod    `yaml:"template"`
	}
	service struct { // v1
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			ClusterIP                string            `yaml:"clusterIP"`
			PublishNotReadyAddresses bool              `yaml:"publishNotReadyAddresses"`
			Selector                 map[string]string `yaml:"selector"`
		} `yaml:"spec"`
	}
	indexedJob struct { // batch/v1
		APIVersion string  `yaml:"apiVersion"`
		Kind       string  `yaml:"kind"`
		Metadata   meta    `yaml:"metadata"`
		Spec       jobSpec `yaml:"spec"`
	}
	mpiJob struct { // kubeflow.org/v2beta1
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			MPIImplementation      string `yaml:"mpiImplementation"`
			SlotsPerWorker         int    `yaml:"slotsPerWorker"`
			SSHAuthMountPath       string `yaml:"sshAuthMountPath"`
			LauncherCreationPolicy string `yaml:"launcherCreationPolicy"`
			RunPolicy              struct {
				CleanPodPolicy string `yaml:"cleanPodPolicy"`
				BackoffLimit   int    `yaml:"backoffLimit"`
			} `yaml:"runPolicy"`
			MPIReplicaSpecs struct {
				Launcher replica `yaml:"Launcher"`
				Worker   replica `yaml:"Worker"`
			} `yaml:"mpiReplicaSpecs"`
		} `yaml:"spec"`
	}
	trainingRuntime struct { // trainer.kubeflow.org/v1alpha1; its template is a JobSet
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			MLPolicy struct {
				NumNodes int `yaml:"numNodes"`
				MPI      struct {
					MPIImplementation string `yaml:"mpiImplementation"`
					NumProcPerNode    int    `yaml:"numProcPerNode"`
					SSHAuthMountPath  string `yaml:"sshAuthMountPath"`
					RunLauncherAsNode bool   `yaml:"runLauncherAsNode"`
				} `yaml:"mpi"`
			} `yaml:"mlPolicy"`
			Template struct {
				Spec struct {
					Network struct {
						PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses"`
					} `yaml:"network"`
					SuccessPolicy struct {
						Operator             string   `yaml:"operator"`
						TargetReplicatedJobs []string `yaml:"targetReplicatedJobs"`
					} `yaml:"successPolicy"`
					ReplicatedJobs []struct {
						Name      string `yaml:"name"`
						DependsOn []struct {
							Name   string `yaml:"name"`
							Status string `yaml:"status"`
						} `yaml:"dependsOn"`
						Template struct {
							Metadata meta    `yaml:"metadata"`
							Spec     jobSpec `yaml:"spec"`
						} `yaml:"template"`
					} `yaml:"replicatedJobs"`
				} `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	trainJob struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			RuntimeRef struct {
				APIGroup string `yaml:"apiGroup"`
				Kind     string `yaml:"kind"`
				Name     string `yaml:"name"`
			} `yaml:"runtimeRef"`
			Trainer struct {
				NumNodes int      `yaml:"numNodes"`
				Command  []string `yaml:"command"`
			} `yaml:"trainer"`
		} `yaml:"spec"`
	}
)

// manifest reads the objects of a file in deploy/kubernetes into values of their schemas.
func manifest(t *testing.T, name string, objects ...any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField())
	for _, o := range objects {
		if err := d.Decode(o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var more any
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		t.Errorf("%s has more than %d objects: %v", name, len(objects), err)
	}
}

// trains checks that a manifest's command runs train.sh with that many ranks.
func trains(t *testing.T, command []string, ranks int) {
	t.Helper()
	if len(command) < 4 || command[0] != "train.sh" || command[1] != strconv.Itoa(ranks) {
		t.Fatalf("%q does not start %d ranks", command, ranks)
	}
	for _, args := range [][]string{
		append([]string{"train", command[2], "--out", command[3]}, command[4:]...), {"resume", command[3]},
	} {
		if _, err := kong.Must(&cli{}, kong.Exit(func(int) {})).Parse(args); err != nil {
			t.Errorf("anneal %v: %v", args, err)
		}
	}
	if _, err := config.Load("", append([]string{"data.path=x", "model.vocab=64"}, command[4:]...)); err != nil {
		t.Error(err)
	}
}

// Values that manifests repeat agree: numbers of ranks, names, volumes, the user of the image.
func TestManifestsOfTrainingAgree(t *testing.T) {
	pods := func(list ...pod) {
		t.Helper()
		for _, p := range list {
			var volumes, mounts []string
			for _, v := range p.Spec.Volumes {
				volumes = append(volumes, v.Name)
			}
			c := p.Spec.Containers[0]
			for _, m := range c.VolumeMounts {
				mounts = append(mounts, m.Name)
			}
			if !slices.Equal(volumes, mounts) || p.Spec.SecurityContext.FSGroup != 1000 ||
				c.SecurityContext.RunAsUser != 1000 || c.Resources.Limits.Memory == "" {
				t.Errorf("%s: volumes %v and %v, %+v", c.Name, volumes, mounts, c)
			}
		}
	}
	const keys = "/home/mpiuser/.ssh"

	var m mpiJob
	manifest(t, "train-mpijob.yaml", &m)
	launcher, worker := m.Spec.MPIReplicaSpecs.Launcher, m.Spec.MPIReplicaSpecs.Worker
	pods(launcher.Template, worker.Template)
	trains(t, launcher.Template.Spec.Containers[0].Command, worker.Replicas*m.Spec.SlotsPerWorker)
	if m.APIVersion != "kubeflow.org/v2beta1" || m.Kind != "MPIJob" || m.Spec.SSHAuthMountPath != keys {
		t.Errorf("%+v", m)
	}

	var r trainingRuntime
	var j trainJob
	manifest(t, "train-trainjob.yaml", &r, &j)
	for _, job := range r.Spec.Template.Spec.ReplicatedJobs {
		pods(job.Template.Spec.Template)
	}
	trains(t, j.Spec.Trainer.Command, j.Spec.Trainer.NumNodes*r.Spec.MLPolicy.MPI.NumProcPerNode)
	if j.Spec.RuntimeRef.Kind != r.Kind || j.Spec.RuntimeRef.Name != r.Metadata.Name ||
		j.Spec.RuntimeRef.APIGroup+"/v1alpha1" != r.APIVersion || r.APIVersion != j.APIVersion ||
		r.Spec.MLPolicy.MPI.SSHAuthMountPath != keys {
		t.Errorf("%+v\n%+v", r, j)
	}

	var s service
	var b indexedJob
	manifest(t, "train-job.yaml", &s, &b)
	pods(b.Spec.Template)
	c := b.Spec.Template.Spec.Containers[0]
	last := c.Args[0][strings.LastIndex(c.Args[0], "train.sh"):]
	trains(t, strings.Fields(strings.ReplaceAll(last, `"$RANKS"`, c.Env[0].Value)), b.Spec.Completions)
	if s.Metadata.Name != b.Spec.Template.Spec.Subdomain || s.Spec.Selector["job-name"] != b.Metadata.Name ||
		s.Spec.ClusterIP != "None" || b.Spec.Parallelism != b.Spec.Completions || c.VolumeMounts[1].MountPath != keys {
		t.Errorf("%+v\n%+v", s, b)
	}

	text, err := os.ReadFile("../../deploy/kubernetes/Dockerfile")
	if err != nil || !strings.Contains(string(text), "/etc/ssh/mpi_config") || !strings.Contains(string(text), keys) ||
		!strings.Contains(string(text), "COPY deploy/mpi/train.sh /usr/local/bin/train.sh") {
		t.Errorf("%v\n%s", err, text)
	}
}

// sbatch knows every directive of a batch script, and each stands before the first command, where sbatch stops reading
// them.
func TestBatchScriptsHaveKnownDirectives(t *testing.T) {
	known := []string{
		"array", "cpus-per-task", "job-name", "mem", "nodes", "ntasks-per-node", "open-mode", "output", "requeue",
		"signal", "time",
	}
	directive := regexp.MustCompile(`^#SBATCH --([a-z-]+)(=\S+)?$`)
	scripts, err := filepath.Glob("../../deploy/slurm/*.sbatch")
	if err != nil || len(scripts) < 2 {
		t.Fatal(scripts, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		began := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "#SBATCH") {
				began = began || line != "" && line[0] != '#'
				continue
			}
			if m := directive.FindStringSubmatch(line); m == nil || !slices.Contains(known, m[1]) || began {
				t.Errorf("%s: %s", path, line)
			}
		}
	}
}

// launchers is a directory with scripts that replace mpirun, srun and scontrol. The scripts record their arguments and
// exit with the codes of a list, in order.
type launchers struct{ workshop }

func newLaunchers(t *testing.T, codes ...int) launchers {
	l := launchers{workshop{t, t.TempDir()}}
	write(t, l.path("codes"), strings.Trim(strings.ReplaceAll(fmt.Sprint(codes), " ", "\n"), "[]")+"\n")
	for _, name := range []string{"mpirun", "srun"} {
		l.script(name, `case " $* " in *" train "*) mkdir -p run; [ -e unready ] || : >run/config.yaml ;; esac
code=$(head -1 codes); sed -i 1d codes
if [ -e exit.json ]; then cp exit.json run/exit.json; fi
if [ "$code" = -1 ]; then trap "exit 75" USR1 TERM; while :; do sleep 0.02; done; fi
exit "$code"`)
	}
	l.script("scontrol", ":")
	return l
}

func (l launchers) script(name, text string) {
	l.t.Helper()
	write(l.t, l.path(name), "#!/bin/sh\necho "+name+` "$*" >>calls`+"\n"+text+"\n")
	if err := os.Chmod(l.path(name), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

func (l launchers) command(script string, args ...string) *exec.Cmd {
	l.t.Helper()
	path, err := filepath.Abs(filepath.Join("../../deploy", script))
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{path}, args...)...)
	cmd.Dir = l.dir
	cmd.Env = []string{"PATH=" + l.dir + ":" + os.Getenv("PATH"), "SLURM_JOB_ID=7", "ATTEMPTS=3"}
	return cmd
}

func (l launchers) calls() string {
	text, err := os.ReadFile(l.path("calls"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func exitOf(err error) int {
	if e := new(exec.ExitError); errors.As(err, &e) {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// deploy/mpi/train.sh starts or resumes a run, resumes it after a lost rank, and stops after any other failure.
func TestTrainScriptOfMPI(t *testing.T) {
	const start, resume = "mpirun -n 4 --bind-to none anneal train c.yaml parallel.zero=2 --out run\n",
		"mpirun -n 4 --bind-to none anneal resume run\n"
	for _, c := range []struct {
		codes []int
		exit  int
		calls string
	}{
		{[]int{0}, 0, start},
		{[]int{8, 137, 0}, 0, start + resume + resume},
		{[]int{8, 8, 8, 0}, 8, start + resume + resume},
		{[]int{137, 75}, 75, start + resume},
		{[]int{8, 9, 0}, 0, start + resume + resume}, // MPICH reports SIGKILL as 9
		{[]int{2}, 2, start},
		{[]int{4}, 4, start},
	} {
		l := newLaunchers(t, c.codes...)
		out, err := l.command("mpi/train.sh", "4", "c.yaml", "run", "parallel.zero=2").CombinedOutput()
		if exitOf(err) != c.exit || l.calls() != c.calls {
			t.Errorf("%v: exit %d, want %d\n%s%s", c.codes, exitOf(err), c.exit, l.calls(), out)
		}
	}
	l := newLaunchers(t, 8, 0)
	write(t, l.path("unready"), "")
	cmd := l.command("mpi/train.sh", "4", "c.yaml", "run", "parallel.zero=2")
	if out, err := cmd.CombinedOutput(); err != nil || l.calls() != start+start {
		t.Errorf("a start that was lost: %v\n%s%s", err, l.calls(), out)
	}
	// The run's exit.json decides: code 9 may also mean bad memory, and then nothing is resumed.
	for text, exit := range map[string]int{`{"code":8,"resume":true}`: 75, `{"code":9,"resume":false}`: 9} {
		l := newLaunchers(t, 9, 75)
		write(t, l.path("exit.json"), text)
		if out, err := l.command("mpi/train.sh", "4", "c.yaml", "run").CombinedOutput(); exitOf(err) != exit {
			t.Errorf("%s: exit %d\n%s%s", text, exitOf(err), l.calls(), out)
		}
	}
	l = newLaunchers(t, 0)
	cmd = l.command("mpi/train.sh", "4", "c.yaml", "run")
	cmd.Env = append(cmd.Env, "HOSTFILE=hosts")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(l.calls(), " --hostfile hosts anneal train") {
		t.Errorf("with a hostfile: %v\n%s%s", err, l.calls(), out)
	}
}

// deploy/slurm/train.sbatch queues its job again when that can help.
func TestTrainScriptOfSlurm(t *testing.T) {
	const srun = "srun --mpi=pmix --cpus-per-task=1 --kill-on-bad-exit=0 --wait=120 anneal "
	const start, resume, again = srun + "train c.yaml parallel.zero=2 --out run\n", srun + "resume run\n",
		"scontrol requeue 7\n"
	for _, c := range []struct {
		code, restarts, exit int
		begun                bool
		calls                string
	}{
		{0, 0, 0, false, start}, {0, 1, 0, true, resume}, {75, 3, 0, true, resume + again},
		{8, 0, 0, false, start + again}, {137, 10, 137, true, resume}, {2, 0, 2, false, start}, {4, 1, 4, true, resume},
	} {
		l := newLaunchers(t, c.code)
		if c.begun {
			if err := os.Mkdir(l.path("run"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, l.path("run/config.yaml"), "")
		}
		cmd := l.command("slurm/train.sbatch", "c.yaml", "run", "parallel.zero=2")
		cmd.Env = append(cmd.Env, fmt.Sprint("SLURM_RESTART_COUNT=", c.restarts))
		out, err := cmd.CombinedOutput()
		if exitOf(err) != c.exit || l.calls() != c.calls {
			t.Errorf("%+v: exit %d\n%s%s", c, exitOf(err), l.calls(), out)
		}
	}
}

// A signal reaches the ranks through their launcher; the script waits until they have saved.
func TestTrainScriptsPassSignalsOn(t *testing.T) {
	for _, c := range []struct {
		script string
		args   []string
		signal syscall.Signal
		exit   int
		says   string
	}{
		{"mpi/train.sh", []string{"2", "c.yaml", "run"}, syscall.SIGTERM, 75, "mpirun"},
		{"mpi/train.sh", []string{"2", "c.yaml", "run"}, syscall.SIGUSR1, 75, "mpirun"},
		{"slurm/train.sbatch", []string{"c.yaml", "run"}, syscall.SIGUSR1, 0, "scontrol requeue 7"},
	} {
		l := newLaunchers(t, -1)
		cmd := l.command(c.script, c.args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			if text, err := os.ReadFile(l.path("codes")); err == nil && len(text) == 0 {
				break
			}
		}
		time.Sleep(50 * time.Millisecond) // until the trap is set
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); exitOf(err) != c.exit || !strings.Contains(l.calls(), c.says) {
			t.Errorf("%s, %v: %v\n%s", c.script, c.signal, err, l.calls())
		}
	}
}
