package main

import (
	"context"
	"fmt"
	"strings"

	"anneal/model"
	"anneal/train"
)

type generateCmd struct {
	runArg
	weightsFlag
	Prompt      string  `help:"What the text begins with."`
	MaxTokens   count   `default:"200" help:"Most tokens to add."`
	Temperature float64 `default:"0.8" help:"0 always takes the likeliest token; 1 samples as the model predicts."`
	TopK        count   `help:"Sample among this many likeliest tokens; 0 sets no limit."`
	TopP        float64 `default:"0.95" help:"Sample among the likeliest tokens of this joint probability."`
	Seed        uint64  `default:"1" help:"The same seed gives the same text."`
	reachFlags
	deviceFlag
	threadsFlag
}

func (generateCmd) Help() string {
	return example(`anneal generate runs/go --prompt "func main" --max-tokens 100`) +
		"\n\nKeys and values of the tokens so far are kept, so that a token takes as long as reading the weights; the bits are those without. " +
		"Of a text longer than the context the model sees the end, at least three quarters of a context."
}

func (c generateCmd) Run(s *session) error {
	sampling := model.Sampling{Temperature: c.Temperature, TopK: int(c.TopK), TopP: c.TopP, Seed: c.Seed}
	if err := sampling.Validate(); err != nil {
		return asUsage(fmt.Errorf("--%w", err)) // the settings are called like the flags
	}
	r, err := c.open(s, c.Dir, c.Device, c.Threads, c.reachFlags)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.untilSignal(func(ctx context.Context) error {
		var text strings.Builder
		s.printf("%s", c.Prompt)
		done, err := r.Generate(ctx, train.GenerateOptions{
			Prompt: c.Prompt, MaxTokens: int(c.MaxTokens), Sampling: sampling,
		}, func(piece string) {
			text.WriteString(piece)
			s.printf("%s", piece)
		})
		s.printf("\n")
		if err != nil {
			return err
		}
		s.notef("%s · %s", summary(&done), strings.ToUpper(r.Config.Precision))
		return s.emit(map[string]any{
			"prompt": c.Prompt, "text": text.String(), "tokens": done.Tokens, "step": r.Step, "prompt_tokens": done.Prompt,
			"first_token_seconds": done.First.Seconds(), "tokens_per_second": done.Rate(), "memory_bytes": done.Memory, "cache_bytes": done.Cache, "damaged": faults(r.Skipped),
			"precision": r.Config.Precision,
		})
	})
}

// summary says how generating went, in a line.
func summary(g *train.Generated) string {
	mib := func(n int) string { return memorySize(int64(n)) }
	text := fmt.Sprintf("%d tokens", g.Tokens)
	if g.Tokens > 0 {
		text += fmt.Sprintf(", the first after %.2f s (%d of prompt)", g.First.Seconds(), g.Prompt)
	}
	if rate := g.Rate(); rate > 0 {
		text += fmt.Sprintf(", then %.4g a second", rate)
	}
	return text + fmt.Sprintf(" · %s, keys and values %s of it", mib(g.Memory), mib(g.Cache))
}
