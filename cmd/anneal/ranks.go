package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"anneal/plan"
)

// printRanks prints what a rank keeps and sends at every stage of ZeRO, and what a stage saves.
func printRanks(s *session, p *plan.Foresight) {
	r := p.Ranks
	s.prosef("# ", "# %d ranks: what a rank keeps of the model, and sends in a step (mean over ranks)\n", r.Count)
	bytes := func(n float64) string { return memorySize(int64(math.Ceil(n))) }
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ZeRO\tweights\tgradients\toptimizer\ttotal\ta parameter\tsaves\tsends gradients\tweights\t")
	for _, t := range r.Stages {
		mark := ""
		if t.Zero == r.Zero {
			mark = " < this run"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.2f bytes\t%.0f %%\t%s\t%s\t%s\n", t.Zero, bytes(t.Weights),
			bytes(t.Gradients), bytes(t.State), bytes(t.Kept()), t.Kept()/float64(p.Parameters),
			100*(1-t.Kept()/r.Stages[0].Kept()), bytes(t.SentGradients), bytes(t.SentWeights), mark)
	}
	table.Flush()
	for line := range strings.Lines(text.String()) {
		s.printf("# %s\n", strings.TrimRight(line, " \n"))
	}
}
