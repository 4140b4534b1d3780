package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/internal/units"
	"anneal/use"
)

type generateCmd struct {
	runArg
	weightsFlag
	dtypeFlag
	promptFlags
	Prompts   string   `placeholder:"FILE" help:"File of many prompts to continue: one a line (-: on standard input), or NAME.jsonl with an object a line."`
	Out       outFile  `placeholder:"FILE" example:"texts.jsonl" help:"With --prompts: file for the texts, one JSON object a line."`
	NoStart   bool     `help:"Put no token before the prompt."`
	MaxTokens count    `default:"200" help:"Most tokens to add."`
	Stop      []string `sep:"none" placeholder:"TEXT" help:"End the text before TEXT. May be given several times."`
	samplingFlags
	guessFlag
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
		`anneal generate runs/go --prompt "func main" --dtype q8_0`,
		`anneal generate runs/go --prompt "Q: " --stop "Q:" --min-p 0.05 --repetition-penalty 1.1`,
	) +
		"\n\nWithout a prompt at a terminal, you and the model write in turns; /help lists the commands." +
		"\n\nA key-value cache makes each token cost one pass over the weights, and changes no bit." +
		" If the text is longer than the context, only its end is used (at least ¾ of a context)." +
		"\n\nIf the last few tokens occur earlier in the text, the tokens that followed them there are guessed to" +
		" follow again, and one pass checks three guesses. Text that repeats itself, such as code, is faster; no" +
		" token changes. Models of less than 16M parameters guess nothing, because their passes do not wait for" +
		" weights.\n\n--prompts continues several prompts at the same time, prompt number N with the seed SEED + N − 1."
}

func (c generateCmd) Run(s *session) error {
	c.Eight = c.eight()
	sampling, err := c.sampling()
	if err != nil {
		return asUsage(fmt.Errorf("--%w", err)) // the settings have the names of the flags
	}
	if slices.Contains(c.Stop, "") {
		return &usageError{"--stop: an empty text occurs everywhere", "try a text of at least one character"}
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
	options := use.GenerateOptions{
		Prompt: prompt, Bare: c.NoStart, MaxTokens: int(c.MaxTokens), Stop: c.Stop, OneByOne: c.OneByOne,
		Sampling: sampling,
	}
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
		s.notef("%s · %s", summary(&done), r.Numbers())
		return s.emit(map[string]any{
			"prompt": prompt, "text": text.String(), "step": r.Step, "tokens": len(done.IDs),
			"prompt_tokens": len(done.PromptIDs), "start": before, "end": after, "prompt_ids": done.PromptIDs,
			"ids": done.IDs, "ended": done.Ended, "stopped": done.Stopped, "first_token_seconds": done.First.Seconds(),
			"tokens_per_second": done.Rate(), "passes": done.Passes, "memory_bytes": done.Memory,
			"cache_bytes": done.Cache, "damaged": faults(r.Skipped), "precision": r.Config.Precision, "dtype": c.Dtype,
		})
	})
}

// around returns the special tokens before and after the prompt, and prints a note about them; if none is set, there
// are no such tokens.
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

// perSecond writes a rate of tokens, with a decimal if it is below 100.
func perSecond(rate float64) string {
	if rate < 99.95 {
		return fmt.Sprintf("%.1f", rate)
	}
	return units.Commas(int64(math.Round(rate)))
}

// summary describes the generation in a line: tokens, speed and memory.
func summary(g *use.Generated) string {
	mib := func(n int) string { return memorySize(int64(n)) }
	text := units.Count(len(g.IDs), "token")
	if len(g.IDs) > 0 {
		text += fmt.Sprintf(", the first after %.2f s (%d of prompt)", g.First.Seconds(), len(g.PromptIDs))
	}
	if rate := g.Rate(); rate > 0 {
		text += ", then " + perSecond(rate) + " a second"
	}
	if g.Passes > 0 && g.Passes < len(g.IDs) {
		text += fmt.Sprintf(" in %d passes", g.Passes)
	}
	return text + fmt.Sprintf(" · %s, keys and values %s of it", mib(g.Memory), mib(g.Cache))
}
