package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"anneal/lab/claims"
)

type labClaimsCmd struct {
	Only  []int  `placeholder:"N" help:"Numbers of the claims to measure and show in full, such as 13,28. Default: all claims, as a table."`
	Quick bool   `help:"Measure only the cheap claims: about a minute on two cores."`
	Out   string `default:"runs/claims" placeholder:"DIR" help:"Directory of figures and runs, runs/claims by default. Claims already measured there are not measured again."`
}

func (labClaimsCmd) Help() string {
	return example("anneal lab claims --quick", "anneal lab claims --only 13,28", "anneal lab claims --out "+
		"runs/claims") +
		"\n\nEach claim has a measurement and a rule. The rule turns figures into a verdict: holds, holds when …, " +
		"does not hold,\nor not measurable here. DIR/claims.json keeps the figures; verdicts are computed anew " +
		"each time. docs/claims.md shows\nthe figures of one machine."
}

func (c labClaimsCmd) Run(s *session) error {
	start := time.Now()
	list, err := c.chosen()
	if err != nil {
		return err
	}
	return s.whileTraining(func(ctx context.Context) error {
		measured := 0
		results, err := claims.Run(ctx, claims.Options{
			Dir: c.Out, Claims: list,
			OnClaim: func(x claims.Claim, i, n int) {
				measured++
				s.notef("claim %d (%d of %d, about %s): %s", x.Number, i+1, n,
					seconds(time.Duration(x.Seconds*float64(time.Second))), x.Says)
			},
		})
		if ctx.Err() != nil {
			return &stopped{"stopped; what was measured is saved\n  give the same command again to continue"}
		}
		if results == nil {
			return err
		}
		rows, wrong := claims.Judge(results)
		if wrong != nil {
			return asUsage(wrong)
		}
		rows = slices.DeleteFunc(rows, func(r claims.Row) bool {
			return !slices.ContainsFunc(list, func(x claims.Claim) bool { return x.Number == r.Number })
		})
		for i, r := range rows {
			if len(c.Only) > 0 {
				s.printClaim(r, i > 0)
			} else {
				s.printClaimRow(r)
			}
		}
		if err != nil {
			return err
		}
		elapsed := time.Since(start)
		s.printf("\n")
		if len(c.Only) == 0 {
			s.printf("%s\n", tally(rows))
		}
		s.closing(fmt.Sprintf("%d claims, %d measured now", len(rows), measured), c.Out, elapsed, "")
		return s.emit(map[string]any{
			"machine": results.Machine, "claims": claimsJSON(rows), "out": c.Out, "seconds": elapsed.Seconds(),
		})
	})
}

// chosen returns the claims that the flags select.
func (c labClaimsCmd) chosen() (list []claims.Claim, err error) {
	all := claims.All()
	for _, n := range c.Only {
		if n < claims.First || n > claims.Last {
			return nil, &usageError{fmt.Sprintf("--only %d is not a claim: they are numbered from %d to %d",
				n, claims.First, claims.Last), "try --only 13,28"}
		}
		i := slices.IndexFunc(all, func(x claims.Claim) bool { return x.Number == n })
		if i < 0 {
			return nil, &usageError{fmt.Sprintf("claim %d has no measurement yet", n),
				"docs/claims.md lists those that have one"}
		}
		if c.Quick && !all[i].Quick() {
			return nil, &usageError{fmt.Sprintf("claim %d is not cheap: it takes about %s", n,
				seconds(time.Duration(all[i].Seconds*float64(time.Second)))), "leave out --quick"}
		}
		list = append(list, all[i])
	}
	if len(c.Only) > 0 {
		return list, nil
	}
	if c.Quick {
		all = slices.DeleteFunc(all, func(x claims.Claim) bool { return !x.Quick() })
	}
	return all, nil
}

// printClaimRow prints a line of the table, with the figures below.
func (s *session) printClaimRow(r claims.Row) {
	s.row(fmt.Sprintf("%2d ", r.Number), r.Says)
	s.row("   ", r.Verdict.String()+" · "+strings.Join(r.Lines(), "; "))
}

// printClaim prints a claim in full.
func (s *session) printClaim(r claims.Row, more bool) {
	if more {
		s.printf("\n")
	}
	s.row(fmt.Sprintf("%-8s", fmt.Sprintf("claim %d", r.Number)), r.Says)
	s.row("source  ", r.Source)
	s.row("measured", fmt.Sprintf("%s (%s, %s)", r.How, r.Date, seconds(time.Duration(r.Result.Seconds*1e9))))
	for i, f := range r.Lines() {
		head := "        "
		if i == 0 {
			head = "figures "
		}
		s.row(head, f)
	}
	s.row("rule    ", r.Rule)
	s.row("verdict ", r.Verdict.String())
	s.row("        ", r.Why)
	s.row("cost    ", "about "+seconds(time.Duration(r.Claim.Seconds*float64(time.Second)))+" on two cores")
}

// tally counts the verdicts.
func tally(rows []claims.Row) string {
	counts := map[claims.Ruling]int{}
	for _, r := range rows {
		counts[r.Ruling]++
	}
	return fmt.Sprintf("of %d claims %d hold, %d hold under a condition, %d do not hold, %d are not measurable here",
		len(rows), counts[claims.Holds], counts[claims.HoldsWhen], counts[claims.DoesNotHold],
		counts[claims.NotMeasurable])
}

func claimsJSON(rows []claims.Row) []map[string]any {
	list := []map[string]any{}
	for _, r := range rows {
		list = append(list, map[string]any{
			"claim": r.Number, "says": r.Says, "source": r.Source, "how": r.How, "rule": r.Rule,
			"cost_seconds": r.Claim.Seconds, "date": r.Date, "seconds": r.Result.Seconds, "figures": r.Figures,
			"verdict": r.Ruling, "condition": r.Condition, "why": r.Why,
		})
	}
	return list
}
