package claims

import (
	"context"
	"fmt"
	"path/filepath"

	"anneal/lab/study"
)

// studyClaims are about what the studies of package study show.
func studyClaims() []Claim { return []Claim{collapse()} }

func collapse() Claim {
	return Claim{
		Number: 57, Seconds: 6,
		Says:   "Models that learn from what models wrote collapse, and cannot be saved.",
		Source: "Shumailov et al. 2024, Nature 631",
		How: "anneal lab study collapse with 1,000 trials: words left of a text after ten generations of a table " +
			"of frequencies",
		Rule: "holds if more than a tenth of the words is lost even where real data are kept; holds when real data " +
			"are thrown away if it is lost only there",
		Measure: func(_ context.Context, e *Env) (list []Figure, err error) {
			err = e.scratch(func(dir string) error {
				o := study.CollapseOptions{Seed: 1, Trials: 1000}
				d, err := study.Open(filepath.Join(dir, "collapse"), "collapse", o)
				if err != nil {
					return err
				}
				defer d.Close()
				_, c, err := study.Collapse(d, o)
				if err != nil {
					return err
				}
				for i, name := range []string{"replaced", "a tenth real", "kept"} {
					words := c.Frequencies[i].Support
					list = append(list, Figure{"words left, " + name,
						100 * words[len(words)-1].Mean / words[0].Mean, "%"})
				}
				return nil
			})
			return list, err
		},
		Judge: func(f *Figures) Verdict {
			replaced, kept := f.Of("words left, replaced"), f.Of("words left, kept")
			why := fmt.Sprintf("After ten generations %.0f %% of the first one's words are left if each replaces "+
				"the data, %.0f %% if a tenth is real, and %.0f %% if all data are kept.", replaced,
				f.Of("words left, a tenth real"), kept)
			if replaced < 90 && kept >= 90 {
				return when("each generation's text replaces the data before it", why)
			}
			return choose(replaced < 90, why)
		},
	}
}
