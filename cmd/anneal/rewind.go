package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/run"
)

type rewindCmd struct {
	runArg
	To          count        `required:"" placeholder:"STEP" help:"Continue after the last checkpoint at or before this step."`
	Skip        []batchRange `placeholder:"FROM:TO" help:"Skip the batches of these steps, FROM and TO included, as numbered in metrics.jsonl. May be repeated."`
	SkipBatches count        `placeholder:"N" help:"Skip this many batches, counted from the checkpoint."`
}

func (rewindCmd) Help() string {
	return example("anneal rewind runs/go --to 1100 --skip 1180:1220", "anneal rewind runs/go --to 1100 "+
		"--skip-batches 300", "anneal resume runs/go") +
		"\n\nAfter a loss spike, go back some hundred steps and skip the batches before and during the spike. " +
		"The run's config.yaml lists them (data.skip), and every resume follows it. Later checkpoints are moved to " +
		"checkpoints/aside; their lines in metrics.jsonl stay and are marked."
}

// batchRange is the value FROM:TO, or the number of one batch.
type batchRange run.StepRange

// UnmarshalText reads the value of a flag.
func (b *batchRange) UnmarshalText(text []byte) error {
	from, to, ok := strings.Cut(string(text), ":")
	if !ok {
		to = from
	}
	var err, err2 error
	b.First, err = strconv.Atoi(from)
	b.Last, err2 = strconv.Atoi(to)
	if err != nil || err2 != nil || b.First < 1 {
		return fmt.Errorf("%q is not a range FROM:TO of steps, such as 1180:1220", text)
	}
	return nil
}

func (c rewindCmd) Run(s *session) error {
	o := run.RewindOptions{To: int(c.To), SkipBatches: int(c.SkipBatches), Warn: s.warn}
	for _, r := range c.Skip {
		o.Skip = append(o.Skip, run.StepRange(r))
	}
	start := time.Now()
	r, err := run.Rewind(c.Dir, o)
	if err != nil {
		return err
	}
	to := "its initial weights"
	if r.Checkpoint != "" {
		to = fmt.Sprintf("step %s, %s", units.Commas(r.Step), r.Checkpoint)
	}
	for _, path := range r.SetAside {
		s.printf("set aside  %s\n", path)
	}
	if r.Samples > 0 {
		s.printf("skipped    %s samples; data.skip = %s in all\n", units.Commas(r.Samples), r.Skip)
	}
	s.closing(fmt.Sprintf("back from step %s to %s", units.Commas(r.From), to), c.Dir, time.Since(start),
		command("anneal", "resume", c.Dir))
	return s.emit(r)
}
