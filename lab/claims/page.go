package claims

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed results.json
var committed []byte

// Committed returns the figures in docs/claims.md.
func Committed() (*Results, error) { return Read(committed) }

// PageFile is the path of the page in the repository.
const PageFile = "docs/claims.md"

const pageHead = `<!-- generated from lab/claims/results.json by go generate ./lab/claims -->
# Claims, measured

Papers and tutorials on training are full of figures: "half the memory", "twice as fast", "a third more operations". %s measures
such claims on one machine and judges them. Each claim has a measurement and a rule that turns figures into a verdict; both are code ([lab/claims](../lab/claims)).
This page is generated from the figures alone, and a test generates it again: no verdict is typed in.

` + "```" + `
anneal lab claims --quick          # the cheap ones
anneal lab claims                  # all of them; resumes
anneal lab claims --only 13,28     # in full, with rule and cost
` + "```" + `

Measured on %s: %d cores, kernels %s, anneal %s. Times hold for this machine. Small training runs have models of half a million parameters; they say
nothing about large models beyond what the paper says.

| verdict | claims |
|---|---|
`

// Page returns docs/claims.md.
func Page(r *Results) ([]byte, error) {
	rows, err := Judge(r)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, pageHead, "`anneal lab claims`", m.CPU, m.Cores, m.Tier, m.Version)
	for _, ruling := range []Ruling{Holds, HoldsWhen, DoesNotHold, NotMeasurable} {
		var numbers []string
		for _, row := range rows {
			if row.Ruling == ruling {
				numbers = append(numbers, fmt.Sprintf("[%d](#claim-%d)", row.Number, row.Number))
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", ruling, counted(numbers))
	}
	var open []string
	for n := First; n <= Last; n++ {
		if r.Find(n) == nil {
			open = append(open, strconv.Itoa(n))
		}
	}
	if len(open) > 0 {
		fmt.Fprintf(&b, "| not measured yet | %s |\n", counted(open))
	}
	b.WriteString("\n| | claim | verdict |\n|---:|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| [%d](#claim-%[1]d) | %s | %s |\n", row.Number, row.Says, row.Verdict)
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "\n## Claim %d\n\n**%s** (%s)\n\n**%s.** %s\n\n- Measured: %s (%s, %s).\n- Rule: %s.\n- "+
			"Figures: %s.\n",
			row.Number, row.Says, row.Source, capital(row.Verdict.String()), row.Why, row.How, row.Date,
			duration(row.Result.Seconds), row.Rule, strings.Join(row.Lines(), "; "))
	}
	return []byte(b.String()), nil
}

// counted formats a list with its length before it.
func counted(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(list, ", "))
}

// A Row is a claim with its figures and its verdict.
type Row struct {
	Claim
	Result
	Verdict
}

// Lines returns the figures for display.
func (r Row) Lines() (list []string) {
	for _, f := range r.Figures {
		list = append(list, f.String())
	}
	return list
}

// Judge returns the claims that have figures, with their verdicts, by number.
func Judge(r *Results) (rows []Row, err error) {
	for _, c := range All() {
		x := r.Find(c.Number)
		if x == nil {
			continue
		}
		v, err := c.Verdict(x.Figures)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{c, *x, v})
	}
	return rows, nil
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// duration writes a time in words: seconds below two minutes.
func duration(seconds float64) string {
	switch {
	case seconds < 0.95:
		return "less than a second"
	case seconds < 120:
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f minutes", seconds/60)
}
