package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"anneal/config"
	"anneal/internal/units"
	"anneal/model"
	"anneal/plan"
)

// planRanks sets the plan's memory to that of this process, which is one rank or all of them.
func (s *session) planRanks(p *plan.Foresight) {
	switch {
	case p.Ranks == nil:
	case s.world.Size() > 1:
		p.Bytes = p.Ranks.Bytes[s.world.Rank()]
	default:
		p.Bytes = p.Ranks.Together
	}
}

// printRanks prints the memory and traffic of the fullest rank at every stage of ZeRO, the savings of each stage, and
// how evenly the ranks are filled.
func printRanks(s *session, cfg *config.Config, p *plan.Foresight) {
	r := p.Ranks
	if r.Mesh != nil {
		printShares(s, cfg, p)
		return
	}
	s.prosef("# ", "# %d ranks. What rank %d, which needs most, keeps at each stage of ZeRO, and what a rank "+
		"sends in a step:\n", r.Count, r.Fullest)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ZeRO\tweights\tgradients\toptimizer\ta parameter\tin transit\tin all\tsaves\t"+
		"sends gradients\tweights\t")
	for _, t := range r.Stages {
		mark := ""
		if t.Zero == r.Zero {
			mark = " < this run"
		}
		each, saves := float64(t.Kept())/float64(p.Parameters), 1-float64(t.Total)/float64(r.Stages[0].Total)
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%.2f bytes\t%s\t%s\t%.0f %%\t%s\t%s\t%s\n", t.Zero,
			memorySize(t.Weights), memorySize(t.Gradients), memorySize(t.State), each, memorySize(t.Transit),
			memorySize(t.Total), 100*saves, memorySize(t.SentGradients), memorySize(t.SentWeights), mark)
	}
	table.Flush()
	printTable(s, text.String())
	least, most := slices.Min(r.Bytes), r.Bytes[r.Fullest]
	between := func(of func(int64) string) string {
		if of(least) == of(most) {
			return of(least)
		}
		return of(least) + " to " + of(most)
	}
	s.prosef("# ", "# ranks need %s: %s bytes\n", between(memorySize), between(units.Commas[int64]))
}

func printTable(s *session, text string) {
	for line := range strings.Lines(text) {
		s.printf("# %s\n", strings.TrimRight(line, " \n"))
	}
}

// printShares prints the memory and traffic of the fullest rank of each pipeline stage on a mesh.
func printShares(s *session, cfg *config.Config, p *plan.Foresight) {
	r := p.Ranks
	tensor, context, stages := cfg.Parallel.Mesh()
	s.prosef("# ", "# %s ranks = %d stages × %d data × %d context × %d tensor. What the fullest rank of each stage "+
		"needs, by stage of ZeRO:\n", units.Commas(r.Count), stages, r.Count/cfg.Parallel.Shared(), context, tensor)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "stage\tranks\tfullest\t")
	for zero := range plan.Stages {
		name := fmt.Sprint("ZeRO ", zero)
		if zero == r.Zero {
			name = "this run: " + fmt.Sprint(zero)
		}
		fmt.Fprintf(table, "%s\t", name)
	}
	fmt.Fprintln(table)
	for i, x := range r.Mesh {
		fmt.Fprintf(table, "%d\t%s\t%d\t", i, spanText(model.Span{From: x.First, To: x.Last + 1}), x.Fullest)
		for _, n := range x.Totals {
			fmt.Fprintf(table, "%s\t", memorySize(n))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	printTable(s, text.String())
	printFit(s, p)
	text.Reset()
	s.prosef("# ", "# What it sends in a step along each axis, and what it keeps for backward passes (kept):\n")
	fmt.Fprint(table, "stage\ttensor\tcontext\tpipeline\tgradients\tweights\tkept\t")
	if r.Mesh[0].Whole > 0 {
		fmt.Fprint(table, "kept whole\t")
	}
	fmt.Fprintln(table)
	for i, x := range r.Mesh {
		fmt.Fprintf(table, "%d\t", i)
		for _, n := range []int64{x.Sent.Tensor, x.Sent.Context, x.Sent.Pipeline, x.Sent.Gradients, x.Sent.Weights,
			x.Activations} {
			fmt.Fprintf(table, "%s\t", memorySize(n))
		}
		if x.Whole > 0 {
			fmt.Fprintf(table, "%s\t", memorySize(x.Whole))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	printTable(s, text.String())
	if r.Mesh[0].Whole > 0 {
		s.prosef("# ", "# kept whole: with parallel.sequence = false\n")
	}
}

// printFit prints at which stages of ZeRO a pipeline stage does not fit a rank's memory.
func printFit(s *session, p *plan.Foresight) {
	if p.Available == 0 || p.Ranks.Here {
		return
	}
	for zero := range plan.Stages {
		var out []string
		for i, x := range p.Ranks.Mesh {
			if x.Totals[zero] > p.Available {
				out = append(out, fmt.Sprint(i))
			}
		}
		switch len(out) {
		case 0:
		case len(p.Ranks.Mesh):
			s.prosef("#   ", "# ZeRO %d does not fit %s\n", zero, cardSize(p.Available))
		default:
			s.prosef("#   ", "# ZeRO %d does not fit %s on stage %s\n", zero, cardSize(p.Available),
				strings.Join(out, ", "))
		}
	}
}

// cardSize writes an amount of memory in whole GB, if it is one.
func cardSize(n int64) string {
	if n%1e9 == 0 {
		return fmt.Sprintf("%d GB", n/1e9)
	}
	return memorySize(n)
}
