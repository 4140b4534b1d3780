package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"anneal/checkpoint"
	"anneal/internal/buildinfo"
	"anneal/internal/fileio"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/run"
)

type debugCmd struct {
	runArg
	Out outFile `placeholder:"FILE" example:"debug.tar.gz" help:"Archive to write. Default: anneal-debug-NAME.tar.gz in the working directory."`
}

func (debugCmd) Help() string {
	return example("anneal debug runs/go", "anneal debug runs/go --out /tmp/report.tar.gz") +
		"\n\nThe archive is for a bug report. It holds the config, the journal, the end of the metrics, " +
		"crash dumps, timings, a list of the run's files and checkpoints, and a description of this machine. It " +
		"holds no text, no tokenizer and no weights. Redacted everywhere: " + run.Redacted + ". Nothing is sent: " +
		"look at the archive before you share it."
}

func (c debugCmd) Run(s *session) error {
	start := time.Now()
	b, err := run.NewDebug(c.Dir)
	if err != nil {
		return err
	}
	b.Add("machine.json", describeMachine())
	b.Add("checkpoints.txt", describeCheckpoints(c.checkpoints()))
	name := "anneal-debug-" + run.Name(c.Dir)
	out := c.Out
	if out == "" {
		out = outFile(name + ".tar.gz")
	}
	if err := fileio.Write(string(out), func(w io.Writer) error { return b.Write(w, name) }); err != nil {
		return err
	}
	for _, f := range b.Files {
		s.printf("%10d bytes  %s\n", f.Size, f.Name)
	}
	s.prosef("  ", "redacted: %s\n", run.Redacted)
	s.closing("the files that a bug report needs, without text and weights", out.String(), time.Since(start),
		out.next("tar -xzOf", command(filepath.ToSlash(name)+"/config.yaml")+"   # look before you share it"))
	return s.emit(map[string]any{"out": out, "files": b.Files, "seconds": time.Since(start).Seconds()})
}

// tellingVariables are the environment variables that affect how anneal runs. Others are left out, because any may
// hold a secret.
var tellingVariables = []string{
	"ANNEAL_CPU", "ANNEAL_CUDA_PATH", "ANNEAL_CUDA_PROFILE", "ANNEAL_MPI",
	"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOTRACEBACK", "GOAMD64",
	"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "NO_COLOR", "COLUMNS",
}

// describeMachine describes the machine without measuring it.
func describeMachine() []byte {
	tier, err := isa.Choose()
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	var environment []string
	for _, name := range tellingVariables {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	free, _ := machine.FreeDisk(".")
	text, _ := json.MarshalIndent(map[string]any{
		"version": buildinfo.String(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		"cpu": machine.CPUName(), "threads": runtime.GOMAXPROCS(0), "tier": tier.String(), "tier_fault": fault,
		"memory": machine.ReadMemory(), "disk_free_bytes": free, "environment": environment,
	}, "", "  ")
	return append(text, '\n')
}

// describeCheckpoints lists a run's checkpoints and what is wrong with them.
func describeCheckpoints(dir string) []byte {
	var b bytes.Buffer
	list, err := checkpoint.List(dir)
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	for _, e := range list {
		fmt.Fprintf(&b, "step %d  %s", e.Step, e.Name)
		if e.Err != nil {
			fmt.Fprintf(&b, "  %v", e.Err)
		}
		fmt.Fprintln(&b)
	}
	return b.Bytes()
}
