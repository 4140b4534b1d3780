package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"anneal/plan"
)

// planRanks makes a plan that of this process: of one rank, or of all.
func (s *session) planRanks(p *plan.Foresight) {
	switch {
	case p.Ranks == nil:
	case s.world.Size() > 1:
		p.Bytes = p.Ranks.Bytes[s.world.Rank()]
	default:
		p.Bytes = p.Ranks.Together
	}
}

// printRanks prints what the fullest rank keeps and sends at every stage of ZeRO, what a stage saves, and how evenly
// the ranks are filled.
func printRanks(s *session, p *plan.Foresight) {
	r := p.Ranks
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
	for line := range strings.Lines(text.String()) {
		s.printf("# %s\n", strings.TrimRight(line, " \n"))
	}
	least := slices.Min(r.Bytes)
	s.prosef("# ", "# ranks need %s to %s: %s and %s bytes\n", memorySize(least), memorySize(r.Bytes[r.Fullest]),
		thousands(least), thousands(r.Bytes[r.Fullest]))
}

// rankVerdict says in a sentence whether the ranks fit: all of them, if this machine has threads for them, or else one
// on a machine like this.
func rankVerdict(p *plan.Foresight) string {
	r, need := p.Ranks, memorySize(p.Bytes)
	who := fmt.Sprintf("a rank on a machine like this needs at most %s", need)
	if r.Here {
		who = fmt.Sprintf("all %d ranks in one process need %s", r.Count, need)
	}
	switch {
	case p.Available == 0:
		return who + "; how much memory is available is not known"
	case p.Fits:
		return fmt.Sprintf("fits: %s of %s available", who, memorySize(p.Available))
	}
	return fmt.Sprintf("does not fit: %s, %s are available", who, memorySize(p.Available))
}
