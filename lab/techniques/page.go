package techniques

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed results.json
var committed []byte

// Committed returns the figures in docs/measured.md.
func Committed() (*Results, error) { return Read(committed) }

// PageFile is the path of the page in the repository.
const PageFile = "docs/measured.md"

const pageHead = `<!-- generated from lab/techniques/results.json by go generate ./lab/techniques -->
# Techniques, measured

How much do [training techniques](techniques.md) change the loss of one small model? All are measured in the same way. The learning rate is tuned in factors of 2 with one or two seeds (at least %d values, more while the best is at an edge), then
all seeds are trained with it. A verdict compares runs with the same seed, which share data, order and initial weights. Intervals are 95 %% intervals
(Student's t); a difference counts as seen if its probability by chance is below 5 %%, corrected for the number of techniques in the table (Holm).

The model has half a million parameters (Llama, 4 layers of width 64, vocabulary of 4,096) and reads 820,000 tokens of Go source in 800 steps: the first minute of a training run. Techniques that
help late, or help large models, show little here or even cost. The tables say what a technique does in a short run and how certain that is. They do not rank techniques.

` + "```" + `
anneal lab techniques --only optimizers --seeds 4   # one table; a stopped command continues
anneal lab techniques                               # all of them, with 5 seeds
` + "```" + `

Kernels of another tier round differently, which changes a loss by less than another seed does.
`

// Page returns docs/measured.md.
func Page(r *Results) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, rates)
	b.WriteString("\nThe tables:\n\n")
	for _, g := range Groups() {
		fmt.Fprintf(&b, "- [%s](#%s)\n", g.Title, strings.ReplaceAll(strings.ToLower(g.Title), " ", "-"))
	}
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		if m := r.Find(g.Name); m != nil {
			m.table(&b, g)
		} else {
			b.WriteString("Not measured yet.\n")
		}
	}
	return []byte(b.String())
}

// table writes the table of a group; rows without figures come last.
func (m *Measured) table(b *strings.Builder, g Group) {
	here := m.Machine
	fmt.Fprintf(b, "%d seeds each, rates chosen by %d. %s, %.0f minutes on %d cores of %s, kernels %s, anneal %s.\n\n"+
		"| technique | line | rate | bits/byte | against the first |\n"+
		"|---|---|---|---|---|\n", len(m.Rows[0].Bits), m.Seeds, m.Date, m.Seconds/60, here.Cores,
		here.CPU, here.Tier, here.Version)
	for i, v := range m.Judge() {
		line, edge := "`"+strings.Join(m.Rows[i].Set, "`, `")+"`", ""
		if len(m.Rows[i].Set) == 0 {
			line = "AdamW, cosine"
		}
		if v.AtEdge {
			edge = ", at the edge"
		}
		fmt.Fprintf(b, "| %s | %s | %.3g%s | %.4f | %s |\n", v.Name, line, v.Value, edge, v.Mean(), v.Verdict())
	}
	for _, r := range g.Rows {
		if !slices.ContainsFunc(m.Rows, func(f Figure) bool { return slices.Equal(f.Set, r.Set) }) {
			fmt.Fprintf(b, "| %s | `%s` | | | not measured yet |\n", r.Name, strings.Join(r.Set, "`, `"))
		}
	}
}
