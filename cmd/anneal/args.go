package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/run"
	"anneal/use"
)

// Arguments and flags of several commands are described here once, so that they are the same everywhere.

// configArgs are a config and values that override it.
type configArgs struct {
	Config    string   `arg:"" help:"The YAML config; a run's config.yaml will do."`
	Overrides []string `arg:"" optional:"" name:"section.key=value" help:"Values that replace those of the config."`
}

// remark prints the remarks of the config, which name settings that are read otherwise than written, and notes slow
// kernels. It ignores errors, which the command reports.
func (a configArgs) remark(s *session) {
	cfg, err := config.Load(a.Config, a.Overrides)
	if err != nil {
		return
	}
	for _, remark := range cfg.Remarks() {
		s.warn(remark)
	}
	if cfg.Device == "cpu" {
		s.noteKernels()
	}
}

// runArg names the directory of a run.
type runArg struct {
	Dir string `arg:"" name:"run" help:"Directory of the run."`
}

func (r runArg) checkpoints() string { return filepath.Join(r.Dir, "checkpoints") }

// noCheckpoint returns err, unless it says that there is no checkpoint because there is no run.
func (r runArg) noCheckpoint(err error) error {
	if errors.Is(err, checkpoint.ErrNone) {
		if _, missing := run.Config(r.Dir); errors.Is(missing, run.ErrNoRun) {
			return missing
		}
	}
	return err
}

// threadsFlag is on commands without a config that sets the number of threads.
type threadsFlag struct {
	Threads count `help:"Worker threads; 0: one per core."`
}

// runThreadsFlag is on commands that train with a config.
type runThreadsFlag struct {
	Threads count `help:"Worker threads; 0: as many as the config says. The result does not depend on it."`
}

// deviceFlag is on commands without a config that names the device.
type deviceFlag struct {
	Device string `default:"cpu" enum:"cpu,cuda" help:"Device: ${enum}."`
}

// runDeviceFlag is on commands that continue a run.
type runDeviceFlag struct {
	Device string `placeholder:"NAME" help:"Device: cpu or cuda. Default: that of the config."`
}

// weightsFlag says which weights of a run to use.
type weightsFlag struct {
	Weights string `default:"last" enum:"last,ema" help:"last: the weights of the newest checkpoint. ema: their moving average (average.ema)."`
	Step    count  `help:"Use the checkpoint of this step. 0: the newest. anneal ckpt ls shows them."`
	olderFlag
	Apart bool `kong:"-"` // adapters are not merged into the weights
	Eight bool `kong:"-"` // see dtypeFlag
}

// dtypeFlag is on commands that compute with weights but do not write them.
type dtypeFlag struct {
	Dtype string `default:"run" enum:"run,q8_0" help:"Number format of the weights. run: that of the run. q8_0: 8 bits, with a scale for every 32 weights (CPU only). Each token then reads about half the bytes of bf16."`
}

// eight reports whether the weights are held in 8 bits.
func (d dtypeFlag) eight() bool { return d.Dtype == "q8_0" }

// guessFlag is on commands that generate text.
type guessFlag struct {
	OneByOne bool `help:"Do not guess tokens ahead. The text is the same, but usually takes longer."`
}

// olderFlag is on commands that read the newest checkpoint of a run.
type olderFlag struct {
	AllowOlder bool `help:"If the newest checkpoint is damaged, use an older one. If the run diverged, use the last checkpoint before the divergence."`
}

// noteOlder says that a checkpoint of a step was used because newer ones are damaged.
func (s *session) noteOlder(step int64, skipped []error) {
	for _, fault := range skipped {
		s.warn(fmt.Sprintf("%v; using step %d", fault, step))
	}
}

// faults is the text of each error, for JSON.
func faults(skipped []error) []string {
	list := make([]string, len(skipped))
	for i, err := range skipped {
		list[i] = err.Error()
	}
	return list
}

// open loads the run with these weights; the caller closes it.
func (w weightsFlag) open(s *session, dir, device string, threads count, reach reachFlags) (*use.Trained, error) {
	r, err := use.OpenWith(dir, use.OpenOptions{
		Device: device, Threads: int(threads),
		WeightOptions: run.WeightOptions{
			Average: w.Weights == "ema", Step: int64(w.Step), AllowOlder: w.AllowOlder,
		},
		Reach: use.Reach{Context: reach.Context, RopeScaling: reach.RopeScaling},
		Eight: w.Eight,
		Apart: w.Apart,
	})
	if err == nil {
		s.noteOlder(r.Step, r.Skipped)
		for _, change := range r.Changed {
			s.warn(fmt.Sprintf("%s was changed after step %d: %s", filepath.Join(dir, "config.yaml"), r.Step, change))
		}
	}
	return r, err
}

// reachFlags are on commands that may use a model at other row lengths than those of its training.
type reachFlags struct {
	Context     string `placeholder:"N" help:"Context in tokens, such as 4096, or as a multiple of the training context, such as 4x."`
	RopeScaling string `placeholder:"KIND:FACTOR" help:"Stretch RoPE, such as yarn:4, to read contexts longer than in training."`
}
