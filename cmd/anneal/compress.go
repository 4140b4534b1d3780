package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"anneal/compress"
	"anneal/lab"
	"anneal/run"
)

type compressCmd struct {
	runArg
	Bits   count  `placeholder:"N" help:"Round matrices to N bits, 2 to 8."`
	Group  count  `default:"64" placeholder:"N" help:"Weights of a row that share a scale; 0: the whole row."`
	Method string `default:"gptq" enum:"gptq,nearest" help:"gptq: later columns compensate for the rounding of earlier ones. nearest: round each weight alone."`
	Prune  string `placeholder:"SHARE" help:"Set weights to 0: the smallest 50% of a matrix, two of four (2:4), or whole units (heads:25%, channels:25%)."`
	Data   string `placeholder:"DIR" help:"Data set to measure on, which also gives gptq its inputs. Default: that of the run."`
	Tokens count  `default:"65536" help:"Tokens of the data set's held-out text to score. 0: all."`
	Inputs count  `default:"16384" placeholder:"N" help:"Tokens of the data set's training text that gptq uses."`
	Out    string `required:"" placeholder:"RUN" help:"Directory of the run to make."`
	threadsFlag
}

func (compressCmd) Help() string {
	return example("anneal compress runs/go --bits 4 --out runs/go-4bit",
		"anneal compress runs/go --bits 8 --method nearest --out runs/go-8bit",
		"anneal compress runs/go --prune 50% --out runs/go-half",
		"anneal compress runs/go --prune 2:4 --bits 4 --out runs/go-small",
		"anneal compress runs/go --prune channels:25% --out runs/go-narrow") +
		"\n\nMatrices are rounded or pruned, after adapters are merged; embeddings, head, gains and biases stay as " +
		"they are. It prints the loss on held-out text before and after, and the size that the model would have in " +
		"such a format. The run itself holds FP32 weights, for generate, eval and export. gptq is Frantar et al. " +
		"2022 (arXiv 2210.17323)."
}

func (c compressCmd) Run(s *session) error {
	o := lab.CompressOptions{
		Out: c.Out, GPTQ: c.Method == "gptq", Data: c.Data, Tokens: int(c.Tokens), Inputs: int(c.Inputs),
		Threads: int(c.Threads), OnPhase: func(what string) { s.notef("%s", what) },
		OnProgress: s.status.tokensProgress("scored"),
	}
	if err := c.into(&o); err != nil {
		return err
	}
	if o.Data == "" {
		cfg, err := run.Config(c.Dir)
		if err != nil {
			return err
		}
		if o.Data = cfg.Data.Path; o.Data == "" {
			return &usageError{"this run has no single data set to measure on", "try --data DIR"}
		}
	}
	start := time.Now()
	return s.whileTraining(func(ctx context.Context) error {
		r, err := lab.Compress(ctx, c.Dir, o)
		if err != nil {
			return err
		}
		s.printf("%-12s  %10s  %10s\n", "", "before", "after")
		s.printf("%-12s  %10.4f  %10.4f  bits per byte of held-out text (%+.2f %%)\n", "quality", r.Before, r.After,
			100*(r.After/r.Before-1))
		s.printf("%-12s  %10s  %10s  with %.3gM weights in matrices, and the rest in BF16\n", "size",
			memorySize(int64(r.BytesBefore)), memorySize(int64(r.BytesAfter)), float64(r.Weights)/1e6)
		s.printf("%-12s  %10s  %9.1f%%  of these weights\n", "zeros", "", 100*r.Zeros)
		if o.Whole != "" {
			s.printf("%-12s  %10d  %10d  in a layer: %d of %[2]d pruned\n",
				o.Whole, r.Units, r.Units-r.Pruned, r.Pruned)
		}
		elapsed := time.Since(start)
		s.closing("a run for generate, eval and export", c.Out, elapsed, command("anneal", "generate", c.Out))
		return s.emit(struct {
			*lab.Compressed
			Seconds float64 `json:"seconds"`
		}{r, elapsed.Seconds()})
	})
}

// into fills in the options that say how to compress the weights.
func (c compressCmd) into(o *lab.CompressOptions) error {
	if c.Bits == 0 && c.Prune == "" {
		return &usageError{"nothing to do: neither --bits nor --prune", "try --bits 4"}
	}
	if c.Bits != 0 && (c.Bits < 2 || c.Bits > 8) {
		return &usageError{fmt.Sprintf("--bits %d", c.Bits), "try 2 to 8"}
	}
	o.Grid = compress.Grid{Bits: int(c.Bits), Group: int(c.Group)}
	if c.Group == 0 {
		o.Grid.Group = 1 << 30
	}
	if c.Bits > 0 && c.Method == "gptq" && c.Inputs == 0 {
		return &usageError{"--inputs 0: gptq needs inputs", "try --inputs 16384, or --method nearest"}
	}
	wrong := &usageError{
		fmt.Sprintf("--prune %s is neither a share nor a pattern", c.Prune), "try 50%, 2:4 or channels:25%",
	}
	text := c.Prune
	if whole, share, named := strings.Cut(c.Prune, ":"); named && (whole == lab.Heads || whole == lab.Channels) {
		o.Whole, text = whole, share
	}
	if keep, block, pattern := strings.Cut(text, ":"); pattern {
		k, err1 := strconv.Atoi(keep)
		n, err2 := strconv.Atoi(block)
		if o.Whole != "" || err1 != nil || err2 != nil || k < 1 || n <= k || n > 1024 {
			return wrong
		}
		o.Of = [2]int{k, n}
		return nil
	}
	if c.Prune != "" {
		share, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if strings.HasSuffix(text, "%") {
			share /= 100
		}
		if err != nil || !(share > 0 && share < 1) {
			return wrong
		}
		o.Prune = share
	}
	return nil
}
