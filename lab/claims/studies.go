package claims

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

// studyClaims are about the results of package study's studies.
func studyClaims() []Claim { return []Claim{selfTaught(), collapse(), deduplicated()} }

func collapse() Claim {
	return Claim{
		Number: 57, Seconds: 6,
		Says:   "Models that learn from what models wrote collapse, and cannot be saved.",
		Source: "Shumailov et al. 2024, Nature 631",
		How: "anneal lab study collapse with 1,000 trials: words left of a text after ten generations of a table " +
			"of frequencies",
		Rule: "holds if more than a tenth of the words is lost even where real data are kept; holds when real data " +
			"are thrown away if it is lost only there",
		Measure: func(ctx context.Context, e *Env) (list []Figure, err error) {
			o := study.CollapseOptions{Seed: 1, Trials: 1000}
			err = e.study("collapse", o, func(d *study.Dir) error {
				_, c, err := study.Collapse(ctx, d, o)
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

// The numbers of worked examples in the self-improvement study.
const (
	manyExamples = 300
	fewExamples  = 30
)

func selfTaught() Claim {
	return Claim{
		Number: 56, Seconds: 300,
		Says:   "A model teaches itself to reason from its own answers, without reasoning that people wrote.",
		Source: "Zelikman et al. 2022, arXiv 2203.14465 (STaR: 36.6 to 72.5 % on CommonsenseQA)",
		How: "anneal lab study selfimprove, three rounds: held-out sums a model has right before and after it " +
			"learnt from its right answers, with 300 worked examples and with 30, and from all its answers",
		Rule: "holds if right answers at least double the share from 30 worked examples, too, and that to a tenth or " +
			"more; holds when the first model has some answers right if they do so from 300 alone, and all answers " +
			"do not",
		Measure: func(ctx context.Context, e *Env) (list []Figure, err error) {
			for _, examples := range []int{manyExamples, fewExamples} {
				o := study.SelfImproveOptions{Seed: 1, Examples: examples, Pool: 2000, Rounds: 3, Steps: 600, Decay: 1}
				err := e.study("selfimprove", o, func(d *study.Dir) error {
					_, ways, err := study.SelfImprove(ctx, d, o)
					if err != nil {
						return err
					}
					list = append(list,
						Figure{fmt.Sprintf("before, %d examples", examples), 100 * ways[0].First(), "%"},
						Figure{fmt.Sprintf("after, %d examples", examples), 100 * ways[0].Last(), "%"})
					if examples == manyExamples {
						list = append(list, Figure{"from all answers", 100 * ways[2].Last(), "%"},
							Figure{"from the examples, as many steps", 100 * ways[3].Last(), "%"})
					}
					return nil
				})
				if err != nil {
					return nil, err
				}
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			improves := func(before, after float64) bool { return after >= 2*before && after >= 10 }
			before, after := f.Of("before, 300 examples"), f.Of("after, 300 examples")
			all := f.Of("from all answers")
			few, fewAfter := f.Of("before, 30 examples"), f.Of("after, 30 examples")
			why := fmt.Sprintf("From %.1f %% of the sums right the model comes to %.1f %% if it keeps its right "+
				"answers, to %.1f %% if it keeps all; training on the 300 worked examples for as many steps gives "+
				"%.1f %%. With 30 worked examples it comes from %.1f to %.1f %%.", before, after, all,
				f.Of("from the examples, as many steps"), few, fewAfter)
			switch {
			case !improves(before, after) || improves(before, all):
				return choose(false, why)
			case improves(few, fewAfter):
				return choose(true, why)
			}
			return when("the first model has some answers right, and wrong ones are thrown away", why)
		},
	}
}

func deduplicated() Claim {
	return Claim{
		Number: 58, Seconds: 60,
		Says:   "Removing repeated documents makes models dramatically better.",
		Source: "Lee et al. 2021, arXiv 2107.06499; guides",
		How: "anneal lab study memorisation: secrets that are there 1 to 64 times and that a model writes after " +
			"their key, and bits per byte of new documents, with repeated documents and without",
		Rule: "holds if new documents cost at least a tenth less; holds when what models repeat is counted if they " +
			"write at most a fifth of the secrets that they wrote, and new documents do not cost 1 % more",
		Measure: func(ctx context.Context, e *Env) (list []Figure, err error) {
			o := study.MemorisationOptions{Seed: 1, Steps: 1000, Documents: 20_000}
			err = e.study("memorisation", o, func(d *study.Dir) error {
				_, m, err := study.Memorise(ctx, d, o)
				if err != nil {
					return err
				}
				list = []Figure{
					{"secrets written", 100 * m.Repeated.Extracted(), "%"},
					{"secrets written, deduplicated", 100 * m.Deduplicated.Extracted(), "%"},
					{"new documents", m.Repeated.HeldOut, "bits/byte"},
					{"new documents, deduplicated", m.Deduplicated.HeldOut, "bits/byte"},
				}
				return nil
			})
			return list, err
		},
		Judge: func(f *Figures) Verdict {
			written, once := f.Of("secrets written"), f.Of("secrets written, deduplicated")
			ratio := f.Of("new documents, deduplicated") / f.Of("new documents")
			why := fmt.Sprintf("Of the secrets the model writes %.0f %%, and %.0f %% if repeated documents are "+
				"removed. New documents then cost %.2f times the bits.", written, once, ratio)
			if ratio > 0.9 && ratio <= 1.01 && written > 0 && once <= written/5 {
				return when("what a model repeats of its text is counted", why)
			}
			return choose(ratio <= 0.9, why)
		},
	}
}
