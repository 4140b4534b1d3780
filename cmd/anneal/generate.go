package main

import (
	"context"
	"fmt"
	"strings"

	"anneal/model"
	"anneal/use"
)

type generateCmd struct {
	runArg
	weightsFlag
	promptFlags
	Prompts     string  `placeholder:"FILE" help:"Continue many prompts: one a line, or NAME.jsonl with objects that have a \"prompt\"."`
	Out         outFile `placeholder:"FILE" example:"texts.jsonl" help:"With --prompts: the texts, a JSON object a line."`
	NoStart     bool    `help:"Put nothing before the prompt."`
	MaxTokens   count   `default:"200" help:"Tokens to add at most."`
	Temperature float64 `default:"0.8" help:"0: always the most likely token; 1: sample as the model predicts."`
	TopK        count   `help:"Sample among this many most likely tokens; 0: no limit."`
	TopP        float64 `default:"0.95" help:"Sample among the most likely tokens with this total probability."`
	Seed        uint64  `default:"1" help:"Seed. The same seed gives the same text."`
	reachFlags
	deviceFlag
	threadsFlag
}

func (generateCmd) Help() string {
	return example(`anneal generate runs/go --prompt "func main" --max-tokens 100`,
		"anneal generate runs/go                       # at a terminal: write with the model in turns",
		"anneal generate runs/go < notes.txt           # standard input is the prompt",
		"anneal generate runs/go --prompt-file notes.txt --temperature 0 --json",
		"anneal generate runs/go --prompts questions.txt --out texts.jsonl",
	) +
		"\n\nAt a terminal and without a prompt, it asks for text and continues it. There, /help lists the commands." +
		"\n\nA key-value cache makes each token cost one pass over the weights, and changes no bit." +
		" If the text is longer than the context, only its end is used (at least ¾ of a context)." +
		"\n\nMany prompts are continued several at a time, prompt number N with the seed SEED + N − 1."
}

func (c generateCmd) Run(s *session) error {
	sampling := model.Sampling{Temperature: c.Temperature, TopK: int(c.TopK), TopP: c.TopP, Seed: c.Seed}
	if err := sampling.Validate(); err != nil {
		return asUsage(fmt.Errorf("--%w", err)) // the settings are called like the flags
	}
	if err := c.checkMany(); err != nil {
		return err
	}
	if c.Prompts != "" {
		return c.fromFile(s, sampling)
	}
	prompt, ask, err := c.promptFlags.read(s)
	if err != nil {
		return err
	}
	if ask && s.json {
		return &usageError{"--json needs a prompt", `try --prompt TEXT, or --prompt "" for a text of the model alone`}
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	before, after := around(s, r, c.NoStart)
	options := use.GenerateOptions{Prompt: prompt, Bare: c.NoStart, MaxTokens: int(c.MaxTokens), Sampling: sampling}
	if ask {
		return c.talk(s, r, options)
	}
	return s.untilSignal(func(ctx context.Context) error {
		var text strings.Builder
		s.printf("%s", prompt)
		done, err := r.Generate(ctx, options, func(piece string) {
			text.WriteString(piece)
			s.printf("%s", piece)
		})
		s.printf("\n")
		if err != nil {
			return err
		}
		s.notef("%s · %s", summary(&done), strings.ToUpper(r.Config.Precision))
		return s.emit(map[string]any{
			"prompt": prompt, "text": text.String(), "step": r.Step, "tokens": len(done.IDs),
			"prompt_tokens": len(done.PromptIDs), "start": before, "end": after, "prompt_ids": done.PromptIDs,
			"ids": done.IDs, "ended": done.Ended, "first_token_seconds": done.First.Seconds(),
			"tokens_per_second": done.Rate(), "memory_bytes": done.Memory, "cache_bytes": done.Cache,
			"damaged": faults(r.Skipped), "precision": r.Config.Precision,
		})
	})
}

// around returns the special tokens that are put before and after the prompt, and says so; none if none are to be.
func around(s *session, r *use.Trained, none bool) (before, after []string) {
	if none {
		return []string{}, []string{}
	}
	before, after = r.Around()
	var says []string
	if len(before) > 0 {
		says = append(says, "starts with "+strings.Join(before, ""))
	}
	if len(after) > 0 {
		says = append(says, "is followed by "+strings.Join(after, ""))
	}
	why := "as documents did in training"
	if r.Imported {
		why = "as the tokenizer of the imported model has it"
	}
	if len(says) > 0 {
		s.notef("the text %s, %s; --no-start leaves it out", strings.Join(says, " and "), why)
	}
	return before, after
}

// summary says how generating went, in a line.
func summary(g *use.Generated) string {
	mib := func(n int) string { return memorySize(int64(n)) }
	text := fmt.Sprintf("%d tokens", len(g.IDs))
	if len(g.IDs) > 0 {
		text += fmt.Sprintf(", the first after %.2f s (%d of prompt)", g.First.Seconds(), len(g.PromptIDs))
	}
	if rate := g.Rate(); rate > 0 {
		text += fmt.Sprintf(", then %.4g a second", rate)
	}
	return text + fmt.Sprintf(" · %s, keys and values %s of it", mib(g.Memory), mib(g.Cache))
}
