package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"anneal/bench"
	"anneal/hardware"
)

// publishedPlan prints predictions beside the times of published runs, the worst first.
func (s *session) publishedPlan(file string, fit bool) error {
	list, err := publishedRows(file)
	if err != nil {
		return err
	}
	kinds := map[string]hardware.Efficiency{}
	for _, p := range list {
		kinds[p.Accelerator] = p.Run.Cluster.Accelerator.Efficiency()
	}
	if fit {
		maps.Copy(kinds, bench.FitPublished(list))
	}
	on := map[string][]string{}
	for _, p := range list {
		p.Run.Cluster.SetEfficiency(kinds[p.Accelerator])
		if err := p.Predict(); err != nil {
			return fmt.Errorf("published run %s: %w", p.ID, err)
		}
		if p.Fitted {
			on[p.Accelerator] = append(on[p.Accelerator], p.ID)
		}
	}
	bench.WorstFirst(list)
	summary := summaries(list)
	if s.json {
		return s.emit(map[string]any{"runs": list, "summary": summary, "efficiency": kinds, "fitted_on": on})
	}
	s.printf("%7s  %-6s %-18s %-26s %6s %-22s %11s %11s  %s\n", "error", "run", "accelerator", "model", "n",
		"mesh", "published", "predicted", "source (what it does not state)")
	for _, p := range list {
		s.printf("%+6.1f%%  %-6s %-18s %-26s %6d %-22s %9.3f s %9.3f s  %s\n", 100*p.Error, p.ID, p.Accelerator,
			shorten(p.Model, 26), p.Run.Cluster.Devices, meshName(p), p.Published, p.Predicted, openFields(p))
	}
	s.printf("\n%-36s %5s %14s %12s %12s %12s\n", "", "runs", "median |error|", "within 10 %", "within 20 %",
		"median error")
	for _, x := range summary {
		s.printf("%-36s %5d %12.1f %% %10.0f %% %10.0f %% %10.1f %%\n", x.Name, x.Runs, 100*x.Median, 100*x.Within10,
			100*x.Within20, 100*x.Bias)
	}
	s.printf("\nConstants of each accelerator, fitted on every third run of a source (*):\n")
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		e := kinds[k]
		s.printf("%-16s compute %.3f  memory %.3f  network %.3f   * %s\n", k, e.Compute, e.Memory, e.Network,
			strings.Join(on[k], " "))
	}
	return nil
}

func publishedRows(file string) ([]*bench.PublishedRun, error) {
	if file == "" {
		return bench.PublishedRuns()
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := bench.ReadPublished(f)
	return list, asData(err)
}

// A publishedSummary names the runs of a summary.
type publishedSummary struct {
	Name string `json:"name"`
	bench.Summary
}

func summaries(list []*bench.PublishedRun) []publishedSummary {
	complete := (*bench.PublishedRun).Complete
	rows := []publishedSummary{
		{"complete, not fitted on", bench.Summarise(list, func(p *bench.PublishedRun) bool {
			return complete(p) && !p.Fitted
		})},
		{"complete", bench.Summarise(list, complete)},
		{"all, not fitted on", bench.Summarise(list, func(p *bench.PublishedRun) bool { return !p.Fitted })},
		{"all", bench.Summarise(list, func(*bench.PublishedRun) bool { return true })},
	}
	seen := map[string]bool{}
	for _, p := range list {
		name := p.Set + ", " + p.Accelerator
		if seen[name] {
			continue
		}
		seen[name] = true
		rows = append(rows, publishedSummary{name, bench.Summarise(list, func(q *bench.PublishedRun) bool {
			return q.Set == p.Set && q.Accelerator == p.Accelerator
		})})
	}
	return rows
}

// meshName returns a short name such as t8 p12 v2 d4; axes of size 1 are left out.
func meshName(p *bench.PublishedRun) string {
	m := p.Run.Mesh
	var parts []string
	for _, x := range []struct {
		letter string
		n      int
	}{{"t", m.Tensor}, {"p", m.Pipeline}, {"v", m.Chunks}, {"d", m.Data}, {"c", m.Context}, {"e", m.Expert}} {
		if x.n > 1 {
			parts = append(parts, fmt.Sprint(x.letter, x.n))
		}
	}
	return strings.Join(append(parts, fmt.Sprint("z", m.Zero)), " ")
}

func openFields(p *bench.PublishedRun) string {
	text := p.Source
	if p.Fitted {
		text = "* " + text
	}
	if p.Missing != "" {
		text += " (" + strings.ReplaceAll(p.Missing, ";", ", ") + ")"
	}
	return text
}

func shorten(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
