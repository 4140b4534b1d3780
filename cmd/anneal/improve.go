package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"time"

	"anneal/config"
	"anneal/lab"
	"anneal/lab/study"
	"anneal/model"
	"anneal/run"
)

type improveCmd struct {
	configArgs
	Prompts       string    `required:"" placeholder:"FILE" help:"Questions: one a line (-: on standard input), or NAME.jsonl with objects that have a \"prompt\" and perhaps a \"hint\", which is put before the prompt in a second try."`
	Verify        string    `required:"" placeholder:"PROGRAM" help:"Program, with its arguments. It reads a prompt with its answer on standard input, and accepts the answer with exit code 0."`
	VerifyTimeout inSeconds `default:"10s" placeholder:"TIME" help:"Time for a sample. Then the program is killed, and the sample counts as rejected."`
	VerifyMemory  byteSize  `default:"1GiB" placeholder:"SIZE" help:"Memory for the data of a program; 0: no limit. Linux only."`
	PromptEnd     string    `placeholder:"TEXT" help:"Text at which a document's prompt ends, as in data build."`
	Rounds        count     `default:"3" placeholder:"N" help:"Rounds after the first model, which learns from the seeds alone."`
	Samples       count     `default:"1" placeholder:"K" help:"Answers to each question. More than one needs a temperature above 0."`
	MaxTokens     count     `help:"Most tokens of an answer; 0: as many as the context."`
	Temperature   float64   `default:"0" help:"0: always the most likely token; 1: sample as the model predicts."`
	Seed          uint64    `default:"1" help:"Seed of the samples."`
	Out           string    `required:"" placeholder:"DIR" help:"Directory of the rounds. An interrupted loop is resumed; with more --rounds it continues."`
	runThreadsFlag
}

func (improveCmd) Help() string {
	return example("anneal improve sums.yaml data.path=data/seeds --prompt-end = --prompts questions.txt "+
		"--verify ./check.sh --out runs/better",
		"anneal improve sums.yaml data.path=data/seeds --prompts q.jsonl --verify \"python3 check.py\" --samples 4 "+
			"--temperature 0.8 --rounds 4 --out runs/better4") +
		"\n\nA first model learns from the seeds, the data in data.path. In each round the model answers the " +
		"questions, and the next model learns from the seeds and the answers that the program accepts " +
		"(STaR: Zelikman et al. 2022, arXiv 2203.14465). Every model starts from the weights of init.from if the " +
		"config has it, else from scratch. If an answer is rejected and the question has a hint, such as the right " +
		"result, the model tries again with the hint; answers are kept without it." +
		"\n\nDIR/round-N has kept.jsonl, data, run and round.json. The output of the program is discarded; one " +
		"program runs per core at a time. Questions that the data holds out are not asked."
}

func (c improveCmd) Run(s *session) error {
	start := time.Now()
	o, program, err := c.options(s)
	if err != nil {
		return err
	}
	return s.whileTraining(func(ctx context.Context) error {
		if err := program.Check(ctx); err != nil {
			return err
		}
		d, err := study.Open(c.Out, "improve", c.identity(o))
		if err != nil {
			return err
		}
		defer d.Close()
		s.printf("%5s  %7s  %8s  %6s  %6s  %13s  %s\n", "round", "sampled", "accepted", "share", "kept",
			"held-out loss", "not accepted")
		rounds, err := lab.Improve(ctx, o)
		if err != nil && ctx.Err() != nil {
			return &stopped{"stopped; what was trained and judged is saved\n  give the same command again to continue"}
		}
		if err != nil {
			return err
		}
		elapsed := time.Since(start)
		last := rounds[len(rounds)-1]
		s.closing(fmt.Sprintf("%d models", len(rounds)), c.Out, elapsed, command("anneal", "generate", last.Run))
		return s.emit(map[string]any{"rounds": roundsJSON(rounds), "out": c.Out, "seconds": elapsed.Seconds()})
	})
}

// options reads the options and the files that the loop needs.
func (c improveCmd) options(s *session) (o lab.ImproveOptions, p lab.Program, err error) {
	p = lab.Program{
		Command: strings.Fields(c.Verify), Timeout: time.Duration(float64(c.VerifyTimeout) * float64(time.Second)),
		Memory: int64(c.VerifyMemory),
	}
	o = lab.ImproveOptions{
		Dir: c.Out, Verify: p.Verify, Rounds: int(c.Rounds), Samples: int(c.Samples), MaxTokens: int(c.MaxTokens),
		Sampling: model.Sampling{Temperature: c.Temperature, Seed: c.Seed}, PromptEnd: c.PromptEnd,
		OnStage: func(text string) { s.notef("%s", text) }, OnProgress: s.trainProgress(0),
		OnSample: func(what string, n, of int) {
			s.status.update(func(int) string { return fmt.Sprintf("%d of %d prompts %s", n, of, what) })
		},
		OnRound: func(r lab.Round) { s.printf("%s\n", roundLine(r)) },
	}
	if err := o.Sampling.Validate(); err != nil {
		return o, p, asUsage(fmt.Errorf("--%w", err))
	}
	switch {
	case len(p.Command) == 0:
		return o, p, &usageError{"--verify is empty", "try --verify ./check.sh"}
	case p.Timeout <= 0:
		return o, p, &usageError{"--verify-timeout leaves no time", "try --verify-timeout 10s"}
	case c.Rounds < 1:
		return o, p, &usageError{"no rounds", "try --rounds 3; `anneal train` trains on the seeds alone"}
	case c.Samples < 1 || c.Samples > 1 && c.Temperature == 0:
		return o, p, &usageError{fmt.Sprintf("%d samples at temperature %g", c.Samples, c.Temperature),
			"try --samples 1, or --samples 4 --temperature 0.8: at 0 all samples of a question are equal"}
	}
	if o.Questions, err = s.questions(c.Prompts); err != nil {
		return o, p, err
	}
	overrides := c.Overrides
	if c.Threads > 0 {
		overrides = append(overrides[:len(overrides):len(overrides)], fmt.Sprintf("threads=%d", c.Threads))
	}
	o.Config, err = run.LoadConfig(config.Sources{File: c.Config, Overrides: overrides})
	return o, p, err
}

// identity is everything that decides the results of the rounds, except the config, which is stored in their runs.
func (c improveCmd) identity(o lab.ImproveOptions) map[string]any {
	return map[string]any{
		"prompts_sha256": fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, o.Questions))), "verify": c.Verify,
		"verify_timeout_seconds": float64(c.VerifyTimeout), "verify_memory_bytes": int64(c.VerifyMemory),
		"prompt_end": c.PromptEnd, "samples": o.Samples, "max_tokens": o.MaxTokens, "temperature": c.Temperature,
		"seed": c.Seed,
	}
}

// roundLine is a row of the table.
func roundLine(r lab.Round) string {
	loss, why := "–", ""
	if !math.IsNaN(r.ValLoss) {
		loss = fmt.Sprintf("%.4f", r.ValLoss)
	}
	if r.Round == 0 {
		return fmt.Sprintf("%5d  %7s  %8s  %6s  %6s  %13s  %s", 0, "", "", "", "", loss, "the seeds alone")
	}
	why = r.Judged.String()
	if r.Hinted > 0 {
		why += fmt.Sprintf("; with hints %d of %d accepted", r.Helped, r.Hinted)
	}
	return fmt.Sprintf("%5d  %7d  %8d  %4.1f %%  %6d  %13s  %s", r.Round, r.Sampled, r.Accepted, 100*r.Share(), r.Kept,
		loss, why)
}

// roundsJSON are the rounds of --json.
func roundsJSON(rounds []lab.Round) []any {
	list := make([]any, len(rounds))
	for i, r := range rounds {
		list[i] = struct {
			lab.Round
			ValLoss  number `json:"val_loss"`
			ValExact number `json:"val_exact_match"`
		}{r, number(r.ValLoss), number(r.ValExact)}
	}
	return list
}
