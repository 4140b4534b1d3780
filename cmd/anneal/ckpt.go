package main

import (
	"cmp"
	"fmt"
	"time"

	"anneal/checkpoint"
	"anneal/internal/units"
	"anneal/run"
)

type ckptCmd struct {
	Ls     ckptLsCmd     `cmd:"" help:"List checkpoints, newest first."`
	Verify ckptVerifyCmd `cmd:"" help:"Check every byte of every file of a run."`
	Hash   ckptHashCmd   `cmd:"" help:"Hash the weights and the optimizer state of the newest checkpoint."`

	Merge   ckptMergeCmd   `cmd:"" help:"Write a checkpoint of several ranks as whole tensors."`
	Average ckptAverageCmd `cmd:"" help:"Average the weights of the last checkpoints into a new run."`
}

type ckptLsCmd struct{ runArg }

func (ckptLsCmd) Help() string { return example("anneal ckpt ls runs/go") }

func (c ckptLsCmd) Run(s *session) error {
	entries, err := checkpoint.List(c.checkpoints())
	if err != nil {
		return err
	}
	type row struct {
		Name   string `json:"name"`
		Step   int64  `json:"step"`
		Tokens int64  `json:"tokens"`
		Bytes  int64  `json:"bytes"`
		Error  string `json:"error,omitempty"`
	}
	rows := make([]row, 0, len(entries))
	for _, e := range entries {
		r := row{e.Name, e.Step, e.Tokens, e.Bytes, ""}
		if e.Err != nil {
			r.Error = e.Err.Error()
			s.printf("%-16s unusable: %s\n", e.Name, r.Error)
		} else {
			s.printf("%-16s step %-9s %s tokens  %s\n",
				e.Name, units.Commas(e.Step), units.Commas(e.Tokens), units.FormatSize(e.Bytes))
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return c.noCheckpoint(fmt.Errorf("%s: %w", c.Dir, checkpoint.ErrNone))
	}
	return s.emit(map[string]any{"checkpoints": rows})
}

type ckptVerifyCmd struct{ runArg }

func (ckptVerifyCmd) Help() string {
	return example("anneal ckpt verify runs/go") +
		"\n\nChecks checkpoints, configuration, tokenizer, metrics and data, and that all of them belong " +
		"to this run, which may be training.\n\n" +
		"Exit code 5: a checkpoint is damaged; the first fault is named with file, tensor and offset. " +
		"Exit code 3: another file is damaged."
}

func (c ckptVerifyCmd) Run(s *session) error {
	start := time.Now()
	r, err := run.Verify(c.Dir)
	if err != nil {
		return err
	}
	names := make([]string, len(r.Checkpoints))
	for i, info := range r.Checkpoints {
		names[i] = info.Name
		s.printf("%-16s ok  %s\n", info.Name, units.FormatSize(info.Bytes))
	}
	for _, info := range r.Aside {
		s.printf("%-16s ok  %s, set aside by a rewind\n", info.Name, units.FormatSize(info.Bytes))
	}
	for _, remark := range r.Remarks {
		s.warn(remark)
	}
	s.closing("every byte checked", "", time.Since(start), "")
	return s.emit(map[string]any{"ok": true, "checkpoints": names, "remarks": append([]string{}, r.Remarks...)})
}

type ckptHashCmd struct {
	runArg
	olderFlag
}

func (ckptHashCmd) Help() string {
	return example("anneal ckpt hash runs/go --json") + "\n\nTwo runs with the same hashes hold the same bits."
}

func (c ckptHashCmd) Run(s *session) error {
	weights, optimizer, info, err := checkpoint.Hash(c.checkpoints())
	if err != nil {
		return c.noCheckpoint(err)
	}
	if err := info.Newest(c.checkpoints()); err != nil && !c.AllowOlder {
		return err
	}
	if err := run.CheckOrigin(c.Dir, info); err != nil {
		return err
	}
	s.noteOlder(info.Step, info.Skipped)
	s.printf("weights    %s\noptimizer  %s\nstep       %d\n", weights, cmp.Or(optimizer, "none"), info.Step)
	return s.emit(map[string]any{
		"weights_hash": weights, "optimizer_hash": optimizer, "step": info.Step, "damaged": faults(info.Skipped),
	})
}

type ckptMergeCmd struct {
	runArg
	Step count  `placeholder:"N" help:"Step of the checkpoint. 0: the newest."`
	Out  string `placeholder:"DIR" help:"New directory for the merged checkpoint. Default: it replaces the original in the run."`
}

func (ckptMergeCmd) Help() string {
	return example("anneal ckpt merge runs/go", "anneal ckpt merge runs/go --step 1200 --out merged") +
		"\n\nEvery rank of a run writes the pieces of tensors that it owns to files of its own. The merged " +
		"checkpoint is what one\nrank would have written: whole tensors in one file each for weights, optimizer " +
		"state and average, with the same\nhashes. No command here needs it: all of them read pieces, on any " +
		"number of ranks. It is for other\nprograms, which read model.safetensors.\n\n" +
		"Every byte read is verified. It needs disk space for a second checkpoint, and memory for the largest " +
		"tensor. With --out\nthe run may be training."
}

func (c ckptMergeCmd) Run(s *session) error {
	start := time.Now()
	r, err := run.MergeCheckpoint(c.Dir, int64(c.Step), c.Out)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	if r.Unchanged {
		s.printf("%s has whole tensors already: nothing was written\n", r.Checkpoint)
	} else {
		s.closing(fmt.Sprintf("step %s in whole tensors, %s", units.Commas(r.Step), units.FormatSize(r.Bytes)),
			r.Checkpoint, elapsed, "")
	}
	return s.emit(struct {
		*run.MergeReport
		Seconds float64 `json:"seconds"`
	}{r, elapsed.Seconds()})
}

type ckptAverageCmd struct {
	runArg
	Last       count  `required:"" placeholder:"N" help:"Number of checkpoints, counted from the newest."`
	Out        string `required:"" placeholder:"RUN" help:"Directory of the run to make."`
	AllowOlder bool   `help:"If the run diverged, use its last checkpoints before the divergence."`
}

func (ckptAverageCmd) Help() string {
	return example("anneal ckpt average runs/go --last 3 --out runs/go-mean",
		"anneal eval runs/go-mean --data data/go") +
		"\n\nSums are in float64, and every byte read is verified. Use the result with generate, eval, " +
		"export and train --init-from."
}

func (c ckptAverageCmd) Run(s *session) error {
	start := time.Now()
	r, err := run.AverageCheckpoints(c.Dir, int(c.Last), c.Out, c.AllowOlder)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	s.printf("weights %.16s…\n", r.WeightsHash)
	s.closing(fmt.Sprintf("a run with the mean of steps %s, for generate, eval and export", units.List("%d", r.Steps)),
		r.Run, elapsed, command("anneal", "generate", r.Run))
	return s.emit(struct {
		*run.AverageReport
		Seconds float64 `json:"seconds"`
	}{r, elapsed.Seconds()})
}
