package main

import (
	"cmp"
	"fmt"
	"slices"

	"anneal/bench"
)

// publishedSearch prints the best mesh that a search finds for each published run of a complete shape, beside the
// published one: first those whose published mesh is better, then from the smallest gain to the largest.
func (s *session) publishedSearch(file string) error {
	list, err := publishedRows(file)
	if err != nil {
		return err
	}
	rows := []bench.PublishedSearch{}
	for i, p := range list {
		if !p.Complete() {
			continue
		}
		s.status.update(func(int) string { return fmt.Sprintf("run %d of %d", i+1, len(list)) })
		row, err := p.Search()
		if err != nil {
			return fmt.Errorf("published run %s: %w", p.ID, err)
		}
		rows = append(rows, row)
	}
	s.status.clear()
	slices.SortStableFunc(rows, func(a, b bench.PublishedSearch) int {
		return cmp.Or(order(a)-order(b), cmp.Compare(a.Gain, b.Gain))
	})
	slower, unfit := 0, 0
	s.printf("%7s  %-6s %-26s %-22s %10s %10s  %s\n", "gain", "run", "model", "cluster", "published", "best",
		"published mesh → best")
	for _, x := range rows {
		note := ""
		if !x.Fits {
			note, unfit = " (published mesh is predicted not to fit)", unfit+1
		}
		if x.Slower() {
			slower++
		}
		s.printf("%+6.1f%%  %-6s %-26s %-22s %10s %10s  %s → %s%s\n", 100*x.Gain, x.ID, shorten(x.Model, 26),
			x.Cluster, stepTime(x.Seconds), stepTime(x.Found), x.Published, x.Best, note)
	}
	s.printf("\n%d runs: for %d the published mesh is predicted to fit, and the best found is at least as fast for "+
		"%d of them\n", len(rows), len(rows)-unfit, len(rows)-unfit-slower)
	return s.emit(map[string]any{"searches": rows, "runs": len(rows), "fit": len(rows) - unfit, "slower": slower})
}

// order puts runs whose published mesh is better first, and those whose published mesh does not fit last.
func order(x bench.PublishedSearch) int {
	switch {
	case x.Slower():
		return 0
	case x.Fits:
		return 1
	}
	return 2
}
